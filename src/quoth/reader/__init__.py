"""The reader: marks the span of a passage that answers a question or fills a blank, or says that there is none.

It is a tool of the systems: NPM and REALM may let it read what they found. From the papers to the code:

| source | name |
|---|---|
| BERT (Devlin et al., 2019) §4.2: start logit + end logit | `reader.network.EndsHead` |
| ORQA (Lee et al., 2019) §3: an MLP of both ends | `reader.network.SpanHead` |
| the null answer of every window, log odds against it | `reader.spans.best_spans` |
| ORQA §3: the spans of all passages compete | `answers.evidence.predict_spans` |
| REALM (Guu et al., 2020), eq. 1: each passage by itself | `answers.evidence.predict_spans` (`marginal=True`) |
| the loss: −log of the mass on the right spans | `reader.training.reading_loss` |

Words and lengths: `reader.spans.windows` cuts a long passage, `reader.spans.legal_spans` allows spans that start
and end at word boundaries. `reader.runtime.open_reader` opens a reader in ONNX Runtime or PyTorch; weights are loaded
and saved by `reader.weights.load_reader` and `reader.weights.save_reader`. The way from a question to its answers is
`reader.answering.answer`: spell, find, read, units, calibrate. What people call is `reader.model.Reader`; its settings
are `reader.config.ReaderConfig`; questions with their passages are read by `reader.data.read_examples`; a run is made
by `reader.recipe.prepare`.
"""
