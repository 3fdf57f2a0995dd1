"""Whether transformers opens what we wrote, with nothing missing or unexpected, and computes the same.

Needs torch and transformers, not bert_tf. For each folder of tests/fixtures/checkpoints (`original`)
that was converted by us (`bert-tf convert <original> <written> --to hf`):

    python tests/checks/transformers_opens.py tests/fixtures/checkpoints /tmp/written
"""

import json
import sys
from pathlib import Path

import torch
import transformers


def logits(folder):
    architecture = json.loads((folder / "config.json").read_text())["architectures"][0]
    cls = getattr(transformers, architecture)
    model, info = cls.from_pretrained(folder, output_loading_info=True)
    for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not info[problem], (folder, problem, info[problem])
    ids = torch.arange(5, 14)[None]
    with torch.no_grad():
        return architecture, model.eval()(input_ids=ids, attention_mask=torch.ones_like(ids))[0]


for original in sorted(Path(sys.argv[1]).iterdir()):
    written = Path(sys.argv[2]) / original.name
    (before, theirs), (after, ours) = logits(original), logits(written)
    assert before == after, (before, after)
    assert torch.equal(theirs, ours), original.name
    a, b = (transformers.AutoTokenizer.from_pretrained(f) for f in (original, written))
    text = "the people of the united states, and the government"
    assert a(text)["input_ids"] == b(text)["input_ids"], (original.name, a(text), b(text))
    print(f"{original.name:<20}{before:<26}opens strictly, same bits, same tokens")
