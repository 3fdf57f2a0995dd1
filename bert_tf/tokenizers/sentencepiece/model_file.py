"""SentencePiece's .model files: reading them, and making one of a unigram vocabulary."""

from typing import Any

from google.protobuf.message import DecodeError

from bert_tf.errors import DataError
from bert_tf.types import StrPath

SPACE = "\u2581"  # how pieces spell the space


def _new_proto():
    # Imported here: the module of sentencepiece 0.2.3 needs protobuf 7.36, which it does not ask pip for and other
    # packages may hold back. Then only these tokenizers fail.
    from sentencepiece import sentencepiece_model_pb2 as messages

    return vars(messages)["ModelProto"]()


def pieces_of(model: bytes) -> list[str]:
    """The pieces of a model, the content of its file, as a list; DataError if it is not a model."""
    return [piece.piece for piece in parse_model(model).pieces]


def byte_pieces(proto: Any) -> Any:
    """dict of piece -> the one byte that it stands for: the pieces of a model trained with byte_fallback, as mT5's."""
    pieces = [piece.piece for piece in proto.pieces if piece.type == proto.SentencePiece.BYTE]
    return {piece: bytes([int(piece[3:-1], 16)]) for piece in pieces}  # "<0x0A>"


def unigram_model(scores: Any, unknown: int, control: Any, charsmap: bytes) -> bytes:
    """The content of a .model file.

    Args:
        scores: list of (piece, score), by id.
        unknown: int, the id of the unknown piece.
        control: set of pieces that no text is cut into.
        charsmap: bytes, the table of its normalization, b"" for none.
    """
    proto = _new_proto()
    types = proto.SentencePiece
    for number, (piece, score) in enumerate(scores):
        type_ = types.CONTROL if piece in control else types.NORMAL
        if SPACE in piece[1:]:
            type_ = types.UNUSED  # no word has it
        proto.pieces.add(piece=piece, score=score, type=types.UNKNOWN if number == unknown else type_)
    proto.trainer_spec.model_type = proto.trainer_spec.UNIGRAM
    proto.trainer_spec.unk_id = unknown
    proto.trainer_spec.unk_piece = scores[unknown][0]
    proto.trainer_spec.vocab_size = len(scores)
    proto.normalizer_spec.precompiled_charsmap = charsmap
    return proto.SerializeToString(deterministic=True)


def with_pieces(model: bytes, pieces: Any) -> bytes:
    """The content of a .model file with further pieces at its end, into which no text is cut."""
    proto = parse_model(model)
    for piece in pieces:
        proto.pieces.add(piece=piece, score=0.0, type=proto.SentencePiece.CONTROL)
    proto.trainer_spec.vocab_size = len(proto.pieces)
    return proto.SerializeToString(deterministic=True)


def parse_model(model: bytes) -> Any:
    """The model as a protobuf message; DataError if it is not a model."""
    proto = _new_proto()
    try:
        proto.ParseFromString(model)
    except DecodeError as error:
        raise DataError(f"this is not a SentencePiece model: {error}") from None
    if not proto.pieces:
        raise DataError("this is not a SentencePiece model: it has no pieces")
    check_charsmap(proto.normalizer_spec.precompiled_charsmap, "the table of characters of this SentencePiece model")
    return proto


def check_charsmap(table: bytes, where: StrPath) -> None:
    """Raises DataError, `where` first, for a table of characters whose parts do not have the lengths that it says."""
    size = int.from_bytes(table[:4], "little")  # of the trie; the strings follow
    if table and (size % 4 or not 0 < size <= len(table) - 4):
        raise DataError(f"{where} is cut off, or no table of SentencePiece")
