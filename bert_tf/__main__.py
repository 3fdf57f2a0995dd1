"""`python -m bert_tf` is the command `bert-tf`."""

import sys

from bert_tf.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
