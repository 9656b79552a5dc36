"""The experiment of opting out: an owner's documents are deleted; what is lost, and what is left of them?"""
