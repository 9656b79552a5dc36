"""NPM: fill a blank with a phrase of the corpus, found by the vectors of its first and last token.

From the paper (Min et al., *Nonparametric Masked Language Modeling*, 2022) to the code:

| paper | name |
|---|---|
| §3.1 a vector for every token of the corpus | `encoders.tokens.TokenEncoder.passages` |
| §3.1 a blank is two masks, q_start and q_end | `encoders.tokens.TokenEncoder.blanks` |
| §3.1 the k tokens nearest to each | `index.search.search_all` |
| §3.1 the phrases around them | `npm.candidates.find_candidates` |
| §3.1 exp sim(q_start, c_i) + exp sim(q_end, c_j) | `answers.equations.sum_score` |
| §3.1 the sum over equal phrases | `answers.ranking.group_score` |
| A.1, A.4 exp(sim(q_start, c_i) + sim(q_end, c_j)) | `answers.equations.joint_score` |
| released code: a softmax for each end | `answers.equations.softmax_sum_score` |
| A.3 NPM-single: one mask, one token | `npm.phrases.ScoredTokens` |
| A.4 labels by the words that stand for them | `npm.labels.predict_labels` |
| §6.3 only BM25's best passages (`passages=3`) | `npm.blanks.BlankFiller.asked` |
| §3.2.1, A.2 hide phrases that recur in the batch | `npm.masking.mask_spans` |
| §3.2.2 the contrastive loss of both ends | `npm.losses.phrase_contrastive_loss` |
| §4 a batch holds passages that share phrases | `npm.batches.BatchSampler`, `npm.batches.chain_of_neighbours` |

Positives begin and end at word boundaries; `positives="any"` takes every equal n-gram, as §3.2.2 has it. The loss is
the mean over the masked spans; the paper's is their sum.

Not in the paper: a reader that is asked first (`npm.blanks.combine`), large batches by gradient caching
(`npm.grad_cache.Contrast`), queries that learn over stored vectors (`npm.queries.QueryTask`, after DensePhrases). What
people call is `npm.model.NPM`; its settings and those of its training are `npm.config.NPMConfig` and
`npm.config.TrainConfig`; a run is made by `npm.recipe.prepare`.
"""
