import dataclasses

import pytest

from bert_tf.errors import DataError, RunDirectoryError
from bert_tf.training import data_identity
from tfrecords.shards.manifest import Manifest, Shard

PACKING = {"format": "full_sentences", "pair": "none"}
MANIFEST = Manifest("fingerprint", 500, 32, PACKING, {}, [], [Shard("a", 3, 90, "0" * 64)])


def test_moved_data_are_the_same_and_others_are_refused_with_what_differs(tmp_path):
    (tmp_path / "dev.tsv").write_text("text\tlabel\n")
    data = {
        "data.shards": ("shards", data_identity.of_shards(MANIFEST)),
        "data.dev": (tmp_path / "dev.tsv", data_identity.of_file(tmp_path / "dev.tsv")),
        "init_from": ("run", {"step": 3, "sha256": "0"}),
    }
    data_identity.check(tmp_path, data)  # a run without a record of its data
    data_identity.record(tmp_path, data)
    (tmp_path / "dev.tsv").rename(tmp_path / "moved.tsv")
    data_identity.check(tmp_path, data | {"data.dev": ("moved", data_identity.of_file(tmp_path / "moved.tsv"))})
    (tmp_path / "moved.tsv").write_text("text\tlabxl\n")

    def changed(**changes):
        return data_identity.of_shards(dataclasses.replace(MANIFEST, **changes))

    others = {
        "data.dev=moved has sha256": data_identity.of_file(tmp_path / "moved.tsv"),
        "data.shards=moved has sequence_length 64.* had 32": changed(sequence_length=64),
        "data.shards=moved has examples 4.* had 3": changed(shards=[Shard("a", 4, 90, "1" * 64)]),
        "data.shards=moved has sha256": changed(shards=[Shard("a", 3, 90, "1" * 64)]),
        "init_from=moved has step 4.* had 3": {"step": 4, "sha256": "1"},
    }
    for said, identity in others.items():
        with pytest.raises(RunDirectoryError, match=f"was trained on other data: {said}"):
            data_identity.check(tmp_path, data | {said.split("=")[0]: ("moved", identity)})


@pytest.mark.parametrize("text", ["", "[]", '{"data.shards": 3}', "[" * 9999])
def test_a_damaged_record_is_a_sentence(tmp_path, text):
    (tmp_path / data_identity.RECORD).write_text(text)
    with pytest.raises(DataError, match="inputs.json"):
        data_identity.check(tmp_path, {"data.shards": ("shards", data_identity.of_shards(MANIFEST))})
    with pytest.raises(DataError, match="cannot read .*gone.tsv: No such file"):
        data_identity.of_file(tmp_path / "gone.tsv")
