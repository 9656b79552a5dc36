"""Names and dates in texts: a tool that REALM (what to mask) and Zero-NeR (what becomes a key) use.

`ner.tagger.Tagger` labels words by a network (`ner.network.TagNetwork`) and adds dates by rule
(`ner.dates.find_dates`); `zero_ner.luke_tagger.LukeTagger` classifies spans (LUKE, Yamada et al., 2020, §4.3). A
tagger is trained by `ner.recipe.prepare` on CoNLL files (`ner.data.read_conll`).
"""
