"""Zero-NeR: find passages by the vectors of the entities they mention, with nothing trained for it.

From the paper (Hoshi et al., *Can a Frozen Pretrained Language Model be used for Zero-shot Neural Retrieval on
Entity-centric Questions?*, 2022) to the code:

| paper | name |
|---|---|
| §3 entities are recognised in passages and questions | `zero_ner.recognition.load_recognizer`, `ner.tagger.Tagger` |
| §3 the paper's recogniser | `zero_ner.luke_tagger.LukeTagger` |
| §3 an entity's vector, by a frozen LUKE | `zero_ner.luke.LukeSpans` |
| not in the paper: the same by any encoder, from its tokens | `zero_ner.keys.TokenSpans` |
| §3 the keys of a passage: its entities and its title | `zero_ner.keys.EntityEncoder.encode` |
| §3 the query: the question's entity | `zero_ner.keys.EntityEncoder.asked`, `zero_ner.keys.EntityEncoder.queries` |
| §3 cosine, the best key of each passage | `zero_ner.model.ZeroNER.ranked_by_keys`, `index.retriever.Retriever` |

LUKE gives one vector for an entity of several tokens. Another encoder's tokens are averaged: by default their vectors,
which `quoth-mini-base` scales to length 1; with `pooling="states"` the encoder's states as they are. Several entities
in one question are scored by the mean of each one's nearest key; the paper takes one entity. What people call is
`zero_ner.model.ZeroNER`; its settings are `zero_ner.config.ZeroNERConfig`. Names may also come from a list
(`zero_ner.recognition.NameList`) or from the documents' own links (`zero_ner.recognition.Links`).
"""
