"""Write tests/golden/realm: tiny REALM checkpoints and what the transformers classes compute from them.

The classes left transformers in its version 5, so this runs in an environment of its own, not in Quoth's:

    python3 -m venv realm-env
    realm-env/bin/pip install transformers==4.57.1 torch==2.13.0 numpy safetensors
    realm-env/bin/python tests/golden/make_realm.py

The checkpoints have the names, shapes and quirks of `google/realm-*`: the embedder stores a masked-LM head that it
never uses, tied weights are stored twice, the old `position_ids` buffers are there, the scorer is the pretrained
embedder under another name, and the open-QA model is a fine-tuned embedder, a reader, and the blocks' vectors by the
pretrained embedder. Their weights are random (fixed seed) and large enough that every part matters. Dropout is off
throughout.

Shape suffixes in the names of tensors: B batch, N candidates (blocks), T tokens, D dimensions, P projected dimensions,
V vocabulary, A answers, C spans.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers.models.deprecated.realm import (
    RealmConfig,
    RealmEmbedder,
    RealmForOpenQA,
    RealmKnowledgeAugEncoder,
    RealmReader,
    RealmRetriever,
    RealmScorer,
    RealmTokenizerFast,
)

FOLDER = Path(__file__).parent / "realm"
NUMBERS = "numbers.safetensors"
SEED = 2020
VOCABULARY = (
    "[PAD] [unused0] [UNK] [CLS] [SEP] [MASK] . , ? the of a is in on what who where wrote river city capital stands "
    "flows through paris berlin france germany seine spree raven qu ##oth never ##more poe poem tower bridge born and "
    "beside it was first great ##s ##er north south old new sea hill"
)
WORDS = VOCABULARY.split()
CONFIG = {
    "vocab_size": len(WORDS),
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
    "retriever_proj_size": 8,
    "num_candidates": 3,
    "span_hidden_size": 8,
    "max_span_width": 4,
    "reader_beam_size": 3,
    "reader_seq_len": 32,
    "searcher_beam_size": 6,
    "num_block_records": 10,
}
BLOCKS = (
    ("paris", "paris is the capital of france . the seine flows through paris ."),
    ("berlin", "berlin is the capital of germany . the spree flows through the city , and a tower stands in it ."),
    ("poe", "poe wrote the raven ."),
    ("the raven", "the raven is a poem . quoth the raven , nevermore ."),
    ("seine", "the seine is a river in france ."),
    ("", ""),
    ("tower", "the tower stands beside the river in paris , on a hill . it was first in the north of the city ."),
    ("spree", "the spree is a river in germany ."),
    ("bridge", "the old bridge is beside the sea ."),
    ("france", "the capital of france is paris . where is it ? in the north of france and south of the sea ."),
)
QUESTION = "what is the capital of france ?"
ANSWERS = ("paris", "the seine", "the north of france and south of the sea")
QUERIES = ("the [MASK] flows through [MASK] .", "[MASK] wrote the raven .")
MASKED = (("seine", "paris"), ("poe",))
RETRIEVED = ((4, 0, 5), (5, 2, 3))
ENCODER_WEIGHTS = (
    "realm.embeddings.word_embeddings.weight",
    "realm.embeddings.LayerNorm.bias",
    "realm.encoder.layer.0.attention.self.query.weight",
    "realm.encoder.layer.1.output.dense.weight",
    "cls.predictions.transform.dense.weight",
    "cls.predictions.transform.LayerNorm.weight",
    "cls.predictions.bias",
)
SCORER_WEIGHTS = (
    "embedder.realm.embeddings.token_type_embeddings.weight",
    "embedder.realm.encoder.layer.0.attention.self.value.weight",
    "embedder.realm.pooler.dense.weight",
    "embedder.cls.dense.weight",
    "embedder.cls.LayerNorm.bias",
)
READER_WEIGHTS = (
    "qa_outputs.dense_intermediate.weight",
    "qa_outputs.dense_intermediate.bias",
    "qa_outputs.dense_output.weight",
    "qa_outputs.dense_output.bias",
    "qa_outputs.layer_normalization.weight",
    "realm.embeddings.position_embeddings.weight",
    "realm.encoder.layer.1.attention.self.key.weight",
)
OPENQA_WEIGHTS = (
    "embedder.realm.embeddings.word_embeddings.weight",
    "embedder.realm.pooler.dense.bias",
    "embedder.cls.dense.weight",
    "embedder.cls.LayerNorm.weight",
    "reader.realm.encoder.layer.0.intermediate.dense.weight",
    "reader.qa_outputs.dense_intermediate.weight",
)
Record = dict[str, Tensor]


def main() -> None:
    """Everything, anew."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    torch.manual_seed(SEED)
    tokenizer = make_tokenizer()
    embedder, encoder = scrambled(RealmEmbedder), scrambled(RealmKnowledgeAugEncoder)
    scorer, openqa = scrambled(RealmScorer), scrambled(RealmForOpenQA)
    scorer.embedder.load_state_dict(embedder.state_dict())
    openqa.block_emb.copy_(embed_blocks(embedder, tokenizer))
    reader = RealmReader(RealmConfig(**CONFIG)).eval()
    reader.load_state_dict(openqa.reader.state_dict())
    models = {"embedder": embedder, "encoder": encoder, "scorer": scorer, "reader": reader, "openqa": openqa}
    for name, model in models.items():
        save_checkpoint(name, model)
    numbers = {
        "pretraining": pretraining(tokenizer, scorer, encoder),
        "embedder": {"blocks_NP": openqa.block_emb.clone(), **question_vector(tokenizer, embedder)},
        "reader": reading(tokenizer, reader),
        "openqa": answering(tokenizer, openqa),
    }
    texts = {"blocks": BLOCKS, "question": QUESTION, "answers": ANSWERS, "queries": QUERIES, "retrieved": RETRIEVED}
    (FOLDER / "texts.json").write_text(json.dumps(texts, indent=1) + "\n", encoding="utf-8")
    flat = {f"{part}.{name}": value for part, record in numbers.items() for name, value in record.items()}
    save_file({name: value.detach().clone().contiguous() for name, value in flat.items()}, FOLDER / NUMBERS)


def scrambled(kind: Any) -> Any:
    """A model with weights large enough that no part of it is near the identity; layer norms and biases too."""
    model = kind(RealmConfig(**CONFIG)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            centre = 1.0 if name.endswith(("LayerNorm.weight", "layer_normalization.weight")) else 0.0
            weight.normal_(centre, 0.3)
    return model


def save_checkpoint(name: str, model: nn.Module) -> None:
    """`config.json` and every stored tensor, tied ones twice and old buffers included, as the hub's files have them."""
    folder = FOLDER / name
    folder.mkdir()
    weights = {key: value.detach().clone().contiguous() for key, value in model.state_dict().items()}
    for key in list(weights):
        if key.endswith("embeddings.position_embeddings.weight"):
            place = key.replace("position_embeddings.weight", "position_ids")
            weights[place] = torch.arange(CONFIG["max_position_embeddings"]).unsqueeze(0)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = {**model.config.to_diff_dict(), "architectures": [type(model).__name__]}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    write_vocabulary(folder)


def write_vocabulary(folder: Path) -> None:
    """The tokenizer's files as the hub has them: a word list and two small records, no `tokenizer.json`."""
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    names = {f"{kind}_token": f"[{kind.upper()}]" for kind in ("unk", "sep", "pad", "cls", "mask")}
    (folder / "special_tokens_map.json").write_text(json.dumps(names) + "\n", encoding="utf-8")
    settings = {"do_lower_case": True, **names, "tokenizer_class": "RealmTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings) + "\n", encoding="utf-8")


def make_tokenizer() -> RealmTokenizerFast:
    """The published models' tokenizer over the tiny word list."""
    write_vocabulary(FOLDER)
    tokenizer = RealmTokenizerFast(vocab_file=str(FOLDER / "vocab.txt"))
    for name in ("vocab.txt", "special_tokens_map.json", "tokenizer_config.json"):
        (FOLDER / name).unlink()
    return tokenizer


def encoded(tokens: Any, prefix: str = "") -> Record:
    """The three inputs of a model, by names with shapes."""
    shape = "BNT"[-tokens.input_ids.ndim :] if tokens.input_ids.ndim == 3 else "BT"
    return {f"{prefix}{key}_{shape}": tokens[f"{key}"] for key in ("input_ids", "attention_mask", "token_type_ids")}


@torch.no_grad()
def embed_blocks(embedder: RealmEmbedder, tokenizer: RealmTokenizerFast) -> Tensor:
    """The blocks' vectors [N, P], each encoded as a pair of title and text."""
    titles, texts = (list(column) for column in zip(*BLOCKS, strict=True))
    vectors_NP: Tensor = embedder(**tokenizer(titles, texts, padding=True, return_tensors="pt")).projected_score
    return vectors_NP


def question_vector(tokenizer: RealmTokenizerFast, embedder: RealmEmbedder) -> Record:
    """The vector of a question, encoded as a single text."""
    tokens = tokenizer([QUESTION], return_tensors="pt")
    return {**encoded(tokens), "projected_BP": embedder(**tokens).projected_score}


def gradients(loss: Tensor, model: nn.Module, wanted: tuple[str, ...]) -> Record:
    """The gradients of `loss` with respect to the named weights, keyed by those names; the graph is kept."""
    weights = dict(model.named_parameters())
    found = torch.autograd.grad(loss, [weights[name] for name in wanted], retain_graph=True)
    return {f"grad.{name}": gradient for name, gradient in zip(wanted, found, strict=True)}


def pretraining(tokenizer: RealmTokenizerFast, scorer: RealmScorer, encoder: RealmKnowledgeAugEncoder) -> Record:
    """Two masked queries with three candidates each, the null document among them: scores, logits, loss, gradients."""
    query = tokenizer(list(QUERIES), padding=True, return_tensors="pt")
    titles = [[BLOCKS[row][0] for row in rows] for rows in RETRIEVED]
    texts = [[BLOCKS[row][1] for row in rows] for rows in RETRIEVED]
    candidates = tokenizer.batch_encode_candidates(titles, text_pair=texts, max_length=20, return_tensors="pt")
    repeated = [[text] * 3 for text in QUERIES]
    joint = tokenizer.batch_encode_candidates(repeated, text_pair=texts, max_length=28, return_tensors="pt")
    scores = scorer(**query, **{f"candidate_{key}": value for key, value in candidates.items()})
    labels_BT, mlm_mask_BT = masked_labels(tokenizer, joint.input_ids[:, 0])
    result = encoder(**joint, relevance_score=scores.relevance_score, labels=labels_BT, mlm_mask=mlm_mask_BT)
    unmasked = encoder(**joint, relevance_score=scores.relevance_score, labels=labels_BT)
    nothing = encoder(
        **joint, relevance_score=scores.relevance_score, labels=labels_BT, mlm_mask=torch.zeros_like(mlm_mask_BT)
    )
    (relevance_gradient_BN,) = torch.autograd.grad(result.loss, scores.relevance_score, retain_graph=True)
    return {
        **encoded(query, "query_"),
        **encoded(candidates, "candidate_"),
        **encoded(joint, "joint_"),
        "labels_BT": labels_BT,
        "mlm_mask_BT": mlm_mask_BT,
        "query_vectors_BP": scores.query_score,
        "candidate_vectors_BNP": scores.candidate_score,
        "relevance_BN": scores.relevance_score,
        "logits_BNTV": result.logits.unflatten(0, (2, 3)),
        "loss": result.loss,
        "loss_without_mask": unmasked.loss,
        "loss_of_nothing_masked": nothing.loss,
        "grad.relevance_BN": relevance_gradient_BN,
        **gradients(result.loss, encoder, ENCODER_WEIGHTS),
        **gradients(result.loss, scorer, SCORER_WEIGHTS),
    }


def masked_labels(tokenizer: RealmTokenizerFast, ids_BT: Tensor) -> tuple[Tensor, Tensor]:
    """The hidden tokens [B, T], -100 elsewhere, and 1 where one is hidden [B, T]."""
    labels_BT = torch.full_like(ids_BT, -100)
    for row, words in enumerate(MASKED):
        places = (ids_BT[row] == tokenizer.mask_token_id).nonzero().flatten()
        labels_BT[row, places] = torch.tensor(tokenizer.convert_tokens_to_ids(list(words)))
    return labels_BT, (labels_BT != -100).long()


def reading(tokenizer: RealmTokenizerFast, reader: RealmReader) -> Record:
    """A question and five blocks, of which the reader reads three: span logits, the best span, losses, gradients."""
    rows = [6, 9, 5, 0, 1]
    retriever = RealmRetriever(np.array([text.encode() for _, text in BLOCKS], dtype=object), tokenizer)
    question_ids = tokenizer([QUESTION], return_tensors="pt").input_ids
    has_answer, starts, ends, tokens = retriever(rows, question_ids, answer_ids(tokenizer), max_length=24)
    block_mask_BT = (~tokens.special_tokens_mask.bool()) & tokens.token_type_ids.bool()
    relevance_B = torch.tensor([0.3, 1.2, -0.4, 0.8, 2.0], requires_grad=True)
    inputs = {key: tokens[key][:3] for key in ("input_ids", "attention_mask", "token_type_ids")}
    gold = {
        "start_positions": torch.tensor(starts),
        "end_positions": torch.tensor(ends),
        "has_answers": torch.tensor(has_answer),
    }
    output = reader(**inputs, relevance_score=relevance_B, block_mask=block_mask_BT, **gold)
    no_span = {**gold, "start_positions": torch.full_like(gold["start_positions"], -1)}
    unread = reader(**inputs, relevance_score=relevance_B, block_mask=block_mask_BT, **no_span)
    nowhere = {**no_span, "has_answers": torch.zeros(5, dtype=torch.bool)}
    unfound = reader(**inputs, relevance_score=relevance_B, block_mask=block_mask_BT, **nowhere)
    states_NTD = reader.realm(**inputs).last_hidden_state
    logits_NC, start_C, end_C = reader.qa_outputs(states_NTD, block_mask_BT[:3])
    (relevance_gradient_B,) = torch.autograd.grad(output.loss, relevance_B, retain_graph=True)
    return {
        **encoded(tokens),
        "block_mask_BT": block_mask_BT,
        "relevance_B": relevance_B,
        "gold_starts_BA": gold["start_positions"],
        "gold_ends_BA": gold["end_positions"],
        "has_answers_B": gold["has_answers"],
        "span_starts_C": start_C,
        "span_ends_C": end_C,
        "logits_NC": logits_NC,
        **outcome(output),
        "loss_without_span": unread.loss,
        "loss_without_answer": unfound.loss,
        "grad.relevance_B": relevance_gradient_B,
        **gradients(output.loss, reader, READER_WEIGHTS),
    }


def answer_ids(tokenizer: RealmTokenizerFast) -> list[list[int]]:
    """The ids of each answer, without special tokens."""
    found: list[list[int]] = tokenizer(list(ANSWERS), add_special_tokens=False).input_ids
    return found


def outcome(output: Any) -> Record:
    """The best span and the three losses."""
    return {
        "best_block": output.block_idx,
        "best_start": output.start_pos,
        "best_end": output.end_pos,
        "retriever_loss": output.retriever_loss,
        "reader_loss": output.reader_loss,
        "loss": output.loss,
        "reader_correct_NC": output.reader_correct,
    }


def answering(tokenizer: RealmTokenizerFast, openqa: RealmForOpenQA) -> Record:
    """A question with its answers over ten blocks: six are found and compared, three are read."""
    openqa.retriever = RealmRetriever(np.array([text.encode() for _, text in BLOCKS], dtype=object), tokenizer)
    for module in openqa.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    openqa.train()
    question = tokenizer([QUESTION], return_tensors="pt")
    result = openqa(**question, answer_ids=answer_ids(tokenizer))
    question_BP = openqa.embedder(**question).projected_score
    relevance_N = openqa.block_emb @ question_BP[0]
    best = relevance_N.topk(CONFIG["searcher_beam_size"])
    return {
        **encoded(question),
        "question_BP": question_BP,
        "retrieved_N": best.indices,
        "relevance_N": best.values,
        "has_answers_N": result.reader_output.retriever_correct,
        "answer_ids_T": result.predicted_answer_ids,
        **outcome(result.reader_output),
        **gradients(result.reader_output.loss, openqa, OPENQA_WEIGHTS),
    }


if __name__ == "__main__":
    main()
