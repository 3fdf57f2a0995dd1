"""GLUE and SuperGLUE as they are distributed and as they are submitted."""
