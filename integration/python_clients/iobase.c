/* zkpython refers to a symbol that Python has stopped to export: the type of io.IOBase. This is a type of that name whose
 * instances are those of io.IOBase. It must be imported with RTLD_GLOBAL before zookeeper. */
#include <Python.h>

PyTypeObject PyIOBase_Type;

static PyObject *instance_check(PyObject *self, PyObject *object)
{
    PyObject *io = PyImport_ImportModule("io"), *base;
    int is;
    (void)self;
    if (io == NULL) return NULL;
    base = PyObject_GetAttrString(io, "IOBase");
    Py_DECREF(io);
    if (base == NULL) return NULL;
    is = PyObject_IsInstance(object, base);
    Py_DECREF(base);
    return is < 0 ? NULL : PyBool_FromLong(is);
}

static PyMethodDef methods[] = {{"__instancecheck__", instance_check, METH_O, NULL}, {NULL, NULL, 0, NULL}};

static PyTypeObject meta = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "iobase.Meta",
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_TYPE_SUBCLASS,
    .tp_methods = methods,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "iobase", .m_size = -1};

PyMODINIT_FUNC PyInit_iobase(void)
{
    meta.tp_base = &PyType_Type;
    if (PyType_Ready(&meta) < 0) return NULL;
    Py_SET_TYPE((PyObject *)&PyIOBase_Type, &meta);
    PyIOBase_Type.tp_name = "iobase.IOBase";
    PyIOBase_Type.tp_flags = Py_TPFLAGS_DEFAULT;
    if (PyType_Ready(&PyIOBase_Type) < 0) return NULL;
    return PyModule_Create(&module);
}
