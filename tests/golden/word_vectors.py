"""Writes tests/fixtures/word_vectors: three vectors as gensim writes them, and what gensim reads.

pip install gensim==4.4.0
python tests/golden/word_vectors.py
"""

from pathlib import Path

import numpy as np
from gensim.models import KeyedVectors

FOLDER = Path(__file__).parent.parent / "fixtures" / "word_vectors"
FOLDER.mkdir(exist_ok=True)

vectors = KeyedVectors(vector_size=4)
vectors.add_vectors(["the", "café", "한국"], np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32))
vectors.save_word2vec_format(FOLDER / "gensim.txt")
vectors.save_word2vec_format(FOLDER / "gensim.bin", binary=True)
vectors.save_word2vec_format(FOLDER / "gensim_glove.txt", write_header=False)
np.save(FOLDER / "vectors.npy", vectors.vectors)
