"""REALM: find passages for a text, read it with each of them, and sum over the passages.

From the papers (Guu et al., *REALM: Retrieval-Augmented Language Model Pre-Training*, 2020; ORQA: Lee et al., *Latent
Retrieval for Weakly Supervised Open Domain Question Answering*, 2019) to the code:

| paper | name |
|---|---|
| §3.1 p(y given x) = Σ_z p(y given z, x) p(z given x), eq. 1 | `realm.losses.marginal_of_product` |
| the same over words and spans, when it answers | `realm.own_reader.predict_words`, `answers.evidence.predict_spans` |
| §3.2 the retriever's two towers | `realm.towers.Tower`, `realm.passages.PassageEncoder` |
| §3.2 f(x, z), the inner product | `realm.losses.relevance` |
| §3.2 p(z given x), its softmax | `realm.losses.log_retrieval` |
| §3.2 the knowledge-augmented encoder | `realm.network.ReaderModel`, `realm.network.readings` |
| §3.2 masked words | `realm.network.MLMHead`, `realm.own_reader.OwnReader.at_masks` |
| §3.2 spans (ORQA §3) | `reader.network.SpanHead`, `realm.own_reader.OwnReader.spans` |
| not in the papers: spans by the reader of a `Reader` | `realm.model.GivenReader` |
| §3.3 an index that is made again while training continues | `realm.index_refresh.IndexRefresher` |
| §3.4 salient span masking | `realm.salient.MaskedTexts` |
| §3.4 the null document, no trivial retrieval | `realm.pretrain.PretrainTask`, `realm.pretrain.rows_holding` |
| §3.4 a warm start by the inverse cloze task (ORQA §4) | `realm.ict.ICTTask`, `realm.losses.inverse_cloze_loss` |
| §4 fine-tuning to questions (ORQA §6) | `realm.finetune.FineTuneTask`, `realm.losses.marginal_choice_loss` |
| Table 3 which passages make an answer likely | `realm.model.REALM.likelihood` |
| appendix D retrieval utility | `realm.losses.retrieval_utility` |

The paper's reader joins x with the body of z; that of `quoth-realm-base` reads "Title. body", unless it is trained with
`reader_sees="body"`. The released code lets every mask choose passages of its own: `realm.losses.marginal_per_token`.
The command `quoth convert` makes a folder of the published weights, and joins one model's towers with another's reader.
What people call is `realm.model.REALM`; its settings are `realm.config.REALMConfig`; runs are made by
`realm.recipe.prepare`.
"""
