"""The rows of labelled data: from files and from Python objects, by the roles of their columns, with one policy for bad ones."""
