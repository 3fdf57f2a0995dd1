"""Reads and writes files: whole or absent, one process a folder, on disk and at addresses, errors in one sentence."""

from bert_tf.files.addresses import explain_address, is_address, without_scheme
from bert_tf.files.copies import display_path, local_copy, mirror, push, writes_to
from bert_tf.files.locks import LOCK, LOCKS, lock_directory, lock_file
from bert_tf.files.os_errors import explain_disk_errors, explain_reading
from bert_tf.files.reading import is_there, list_files, list_folder, open_file, sha256
from bert_tf.files.writing import atomic_folder, atomic_path, atomic_write, check_output, sync, write_json
