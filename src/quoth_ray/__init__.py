"""Corpora that are embedded and searched on several machines, by Ray; corpora at URLs."""
