"""Zero-NeR: find passages by the vectors of the entities they mention, with nothing trained for it.

From the paper (Hoshi et al., *Can a Frozen Pretrained Language Model be used for Zero-shot Neural Retrieval on
Entity-centric Questions?*, 2022) to the code:

| paper | name |
|---|---|
| §3 entities are recognised in passages and questions | `zero_ner.recognition.load_recognizer`, `ner.tagger.Tagger` |
| §3 the paper's recogniser | `zero_ner.luke_tagger.LukeTagger` |
| §3 an entity's vector, by a frozen LUKE | `zero_ner.luke.LukeSpans` |
| the same by any encoder: the mean of its tokens | `zero_ner.keys.TokenSpans` |
| §3 the keys of a passage: its entities and its title | `zero_ner.keys.EntityEncoder.encode` |
| §3 the query: the question's entity | `zero_ner.keys.EntityEncoder.asked`, `zero_ner.keys.EntityEncoder.queries` |
| §3 cosine, the best key of each passage | `zero_ner.model.ZeroNER.ranked_by_keys`, `index.retriever.Retriever` |

Several entities in one question are scored by the mean of each one's nearest key. What people call is
`zero_ner.model.ZeroNER`; its settings are `zero_ner.config.ZeroNERConfig`. Names may also come from a list
(`zero_ner.recognition.NameList`) or from the documents' own links (`zero_ner.recognition.Links`).
"""
