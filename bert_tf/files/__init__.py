"""Reads and writes on disk: files that are whole or absent, one process a folder, errors in one sentence."""

from bert_tf.files.locks import LOCK, LOCKS, lock_directory, lock_file
from bert_tf.files.os_errors import explain_disk_errors, explain_reading
from bert_tf.files.reading import is_there, list_folder, sha256
from bert_tf.files.writing import atomic_folder, atomic_path, atomic_write, check_output, sync
