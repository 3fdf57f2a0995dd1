"""Packages are found. configs/ stands at the top, and is installed as bert_tf.configs. All else is in setup.cfg."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["bert_tf*", "tfrecords*"]), "bert_tf.configs"],
    package_dir={"bert_tf.configs": "configs"},
)
