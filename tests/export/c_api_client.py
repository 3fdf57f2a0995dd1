"""Answers requests through TensorFlow's C API alone, as a server in another language would.

No TensorFlow Python is imported: the libraries of the wheels are opened with ctypes. The names of the graph's ends
are those of the SavedModel's signatures.
"""

import ctypes
import importlib.util
import pickle
import sys
from pathlib import Path

import numpy as np

STRING, STRING_BYTES = 7, 24  # TF_STRING, sizeof(TF_TString)
DTYPES = {1: np.float32, 3: np.int32, 9: np.int64, 10: np.bool_}
NUMBERS = {np.dtype(d): n for n, d in DTYPES.items()}
OPERATORS = (
    "_fast_bert_normalizer.so", "_fast_wordpiece_tokenizer.so", "_regex_split_ops.so", "_byte_splitter.so",
)  # fmt: skip


class Output(ctypes.Structure):
    _fields_ = [("operation", ctypes.c_void_p), ("index", ctypes.c_int)]


def package(name):
    return Path(importlib.util.find_spec(name).submodule_search_locations[0])


def open_library():
    folder = package("tensorflow")
    ctypes.CDLL(str(folder / "libtensorflow_framework.so.2"), ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(folder / "libtensorflow_cc.so.2"), ctypes.RTLD_GLOBAL)
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    number = ctypes.c_int
    for name, result, *arguments in (
        ("TF_NewStatus", pointer), ("TF_NewGraph", pointer), ("TF_NewSessionOptions", pointer),
        ("TF_GetCode", number, pointer), ("TF_Message", ctypes.c_char_p, pointer),
        ("TF_LoadLibrary", pointer, ctypes.c_char_p, pointer),
        ("TF_GraphOperationByName", pointer, pointer, ctypes.c_char_p),
        ("TF_AllocateTensor", pointer, number, pointer, number, size), ("TF_DeleteTensor", None, pointer),
        ("TF_TensorData", pointer, pointer), ("TF_TensorType", number, pointer),
        ("TF_NumDims", number, pointer), ("TF_Dim", ctypes.c_int64, pointer, number),
        ("TF_StringInit", None, pointer), ("TF_StringCopy", None, pointer, ctypes.c_char_p, size),
        ("TF_StringGetDataPointer", pointer, pointer), ("TF_StringGetSize", size, pointer),
        ("TF_LoadSessionFromSavedModel", pointer, *[pointer] * 4, number, *[pointer] * 3),
        ("TF_SessionRun", None, *[pointer] * 4, number, pointer, pointer, number, pointer, number, pointer, pointer),
    ):  # fmt: skip
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Model:
    """A session on a SavedModel."""

    def __init__(self, library, path, signatures):
        self.library, self.status = library, library.TF_NewStatus()
        self.graph = library.TF_NewGraph()
        tags = (ctypes.c_char_p * 1)(b"serve")
        self.session = library.TF_LoadSessionFromSavedModel(
            library.TF_NewSessionOptions(), None, path.encode(), tags, 1, self.graph, None, self.status
        )
        self.check()
        self.signatures = signatures

    def check(self):
        if self.library.TF_GetCode(self.status):
            raise RuntimeError(self.library.TF_Message(self.status).decode())

    def run(self, signature, inputs):
        wanted, given = self.signatures[signature]
        tensors = [self.tensor(value) for value in inputs.values()]
        results = (ctypes.c_void_p * len(wanted))()
        self.library.TF_SessionRun(
            self.session, None, self.ends(given[k] for k in inputs), (ctypes.c_void_p * len(tensors))(*tensors),
            len(tensors), self.ends(wanted.values()), results, len(wanted), None, 0, None, self.status,
        )  # fmt: skip
        self.check()
        answer = {name: self.array(result) for name, result in zip(wanted, results)}
        for tensor in (*tensors, *results):
            self.library.TF_DeleteTensor(tensor)
        return answer

    def ends(self, names):
        ends = []
        for name in names:
            operation, index = name.rsplit(":", 1)
            found = self.library.TF_GraphOperationByName(self.graph, operation.encode())
            assert found, f"no operation {operation}"
            ends.append(Output(found, int(index)))
        return (Output * len(ends))(*ends)

    def tensor(self, array):
        dimensions = (ctypes.c_int64 * array.ndim)(*array.shape)
        is_text = array.dtype == object
        bytes_each = STRING_BYTES if is_text else array.itemsize
        kind = STRING if is_text else NUMBERS[array.dtype]
        tensor = self.library.TF_AllocateTensor(kind, dimensions, array.ndim, array.size * bytes_each)
        data = self.library.TF_TensorData(tensor)
        if is_text:
            for i, text in enumerate(array.flat):
                self.library.TF_StringInit(data + i * STRING_BYTES)
                self.library.TF_StringCopy(data + i * STRING_BYTES, text, len(text))
        else:
            ctypes.memmove(data, np.ascontiguousarray(array).ctypes.data, array.nbytes)
        return tensor

    def array(self, tensor):
        library = self.library
        shape = [library.TF_Dim(tensor, i) for i in range(library.TF_NumDims(tensor))]
        data, kind, size = library.TF_TensorData(tensor), library.TF_TensorType(tensor), int(np.prod(shape))
        if kind != STRING:
            dtype = np.dtype(DTYPES[kind])
            return np.frombuffer(ctypes.string_at(data, size * dtype.itemsize), dtype).reshape(shape)
        array = np.empty(size, object)
        for i in range(size):
            place = data + i * STRING_BYTES
            array[i] = ctypes.string_at(library.TF_StringGetDataPointer(place), library.TF_StringGetSize(place))
        return array.reshape(shape)


def main(requests_path, answers_path):
    with open(requests_path, "rb") as file:
        paths, signatures, requests = pickle.load(file)
    library = open_library()
    status = library.TF_NewStatus()
    for name in OPERATORS:
        library.TF_LoadLibrary(str(package("tensorflow_text") / "python" / "ops" / name).encode(), status)
        assert not library.TF_GetCode(status), library.TF_Message(status)
    models = {name: Model(library, path, signatures[name]) for name, path in paths.items()}
    answers = [models[name].run(signature, inputs) for name, signature, inputs in requests]
    assert not any(module.split(".")[0] in ("tensorflow", "bert_tf", "keras") for module in sys.modules)
    with open(answers_path, "wb") as file:
        pickle.dump(answers, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
