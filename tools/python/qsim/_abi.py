# SPDX-License-Identifier: MIT
"""The interface of include/qsim as ctypes sees it: structs, callbacks, functions.

test/python/abi.py compares all of it with the headers.
"""

from __future__ import annotations

import ctypes as C
import os
from typing import Any, Dict, Tuple, Union

from ._library import _ErrorStruct, _lib as _lib

_P = C.c_void_p
_S = C.c_char_p
_I32 = C.c_int32
_I64 = C.c_int64
_U64 = C.c_uint64
_SIZE = C.c_size_t
_F32 = C.c_float
_F64 = C.c_double
_OUT = C.POINTER(C.c_void_p)
_SIZES = C.POINTER(C.c_size_t)
_FLOATS = C.POINTER(C.c_float)
_INTS = C.POINTER(C.c_int32)
_LONGS = C.POINTER(C.c_int64)
_TEXTS = C.POINTER(C.c_char_p)
_ERR = C.POINTER(_ErrorStruct)
_MAX_RANK = 16

# ---- callbacks --------------------------------------------------------------------------------

_LogFn = C.CFUNCTYPE(None, _P, _I32, _S)
_ProgressFn = C.CFUNCTYPE(_I32, _P, _S, _U64, _U64)
_ProblemFn = C.CFUNCTYPE(None, _P, _ERR)
_CostFn = C.CFUNCTYPE(None, _P, _S, C.POINTER(_F64), C.POINTER(_F64))
_ScoreFn = C.CFUNCTYPE(C.c_int, _P, _P, C.POINTER(_F64))

# ---- structs ----------------------------------------------------------------------------------


class _Tensor(C.Structure):
    _c_ = "qsim_tensor"
    _fields_ = [("dtype", _I32), ("rank", _I32), ("dims", _LONGS), ("data", _P), ("bytes", _SIZE)]


class _QParams(C.Structure):
    _c_ = "qsim_qparams"
    _fields_ = [("dtype", _I32), ("axis", _I32), ("block", _I64), ("count", _SIZE),
                ("scale", _FLOATS), ("zero_point", _INTS)]


class _Sized(C.Structure):
    """A struct that begins with struct_size, which is filled in."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(struct_size=C.sizeof(self), **fields)
        for name, value in fields.items():  # ctypes cuts off what a field cannot hold
            if isinstance(value, int) and getattr(self, name) != value:
                raise ValueError(f"{name}: {value} is out of range")


class _OpOptions(_Sized):
    _c_ = "qsim_op_options"
    _fields_ = [("struct_size", _SIZE), ("flags", _I32), ("groups", _I32), ("stride_h", _I32),
                ("stride_w", _I32), ("dilation_h", _I32), ("dilation_w", _I32), ("pad_top", _I32),
                ("pad_left", _I32), ("pad_bottom", _I32), ("pad_right", _I32),
                ("x_zero_point", _I32), ("w_zero_point", _INTS), ("w_zero_points", _SIZE),
                ("bias", _INTS), ("multiplier", _FLOATS), ("multipliers", _SIZE),
                ("y_zero_point", _I32), ("lo", _I32), ("hi", _I32)]


class _ValueInfo(_Sized):
    _c_ = "qsim_value_info"
    _fields_ = [("struct_size", _SIZE), ("name", _S), ("dims", _LONGS), ("dim_names", _TEXTS),
                ("data", _P), ("bytes", _SIZE), ("dtype", _I32), ("rank", _I32)]


class _NodeInfo(_Sized):
    _c_ = "qsim_node_info"
    _fields_ = [("struct_size", _SIZE), ("name", _S), ("domain", _S), ("op_type", _S),
                ("inputs", _TEXTS), ("outputs", _TEXTS), ("input_count", _I32),
                ("output_count", _I32), ("macs", _I64), ("integer", _I32), ("graphs", _I32),
                ("operands", C.c_uint64)]


class _Bytes(C.Structure):
    _c_ = "qsim_bytes"
    _fields_ = [("data", _P), ("size", _SIZE)]


class _AttrInfo(_Sized):
    _c_ = "qsim_attr_info"
    _fields_ = [("struct_size", _SIZE), ("name", _S), ("ints", _LONGS), ("floats", _FLOATS),
                ("strings", C.POINTER(_Bytes)), ("tensor", _Tensor), ("type", _I32),
                ("count", _I32)]


class _OperatorInfo(_Sized):
    _c_ = "qsim_operator_info"
    _fields_ = [("struct_size", _SIZE), ("domain", _S), ("op_type", _S), ("integer_form", _S),
                ("kernel", _S), ("types", C.c_uint32), ("since", _I32), ("until", _I32),
                ("min_inputs", _I32), ("max_inputs", _I32), ("reserved", _I32)]


class _LoadOptions(_Sized):
    _c_ = "qsim_load_options"
    _fields_ = [("struct_size", _SIZE), ("external", _P), ("external_user", _P), ("name", _S),
                ("flags", _I32), ("reserved", _I32)]


class _SaveOptions(_Sized):
    _c_ = "qsim_save_options"
    _fields_ = [("struct_size", _SIZE), ("flags", _I32), ("reserved", _I32)]


class _PackageEntry(_Sized):
    _c_ = "qsim_package_entry"
    _fields_ = [("struct_size", _SIZE), ("name", _S), ("sha256", _S), ("bytes", _U64),
                ("role", _I32), ("stored", _I32)]


class _Limits(_Sized):
    _c_ = "qsim_limits"
    _fields_ = [("struct_size", _SIZE), ("memory", _U64), ("milliseconds", _U64), ("file", _U64),
                ("stream", _U64), ("nodes", _U64), ("values", _U64), ("elements", _U64),
                ("attributes", _U64), ("nesting", _U64), ("entries", _U64), ("ratio", _U64),
                ("threads", _U64)]


class _CtxOptions(_Sized):
    _c_ = "qsim_ctx_options"
    _fields_ = [("struct_size", _SIZE), ("allocator", _P), ("log", _LogFn), ("log_user", _P),
                ("parallel_for", _P), ("parallel_user", _P), ("threads", _I32), ("isa", _I32),
                ("limits", C.POINTER(_Limits))]


class _SessionOptions(_Sized):
    _c_ = "qsim_session_options"
    _fields_ = [("struct_size", _SIZE), ("outputs", _TEXTS), ("output_count", _SIZE), ("ctx", _P),
                ("level", _I32), ("reserved", _I32), ("seed", _U64)]


class _StepInfo(_Sized):
    _c_ = "qsim_step_info"
    _fields_ = [("struct_size", _SIZE), ("node", _S), ("op_type", _S), ("kernel", _S),
                ("macs", _I64), ("nanoseconds", _U64), ("start_ns", _U64), ("bytes_read", _I64),
                ("bytes_written", _I64), ("input_count", _I32), ("output_count", _I32), ("isa", _I32),
                ("reserved", _I32)]


class _ProfileEvent(C.Structure):
    _c_ = "qsim_profile_event"
    _fields_ = [("struct_size", _SIZE), ("execution", _I64), ("start_ns", _U64),
                ("duration_ns", _U64), ("step", _I32), ("reserved", _I32)]


class _Machine(_Sized):
    _c_ = "qsim_machine"
    _fields_ = [("struct_size", _SIZE), ("int8_gmacs", _F64), ("float_gmacs", _F64),
                ("read_gbs", _F64 * 4), ("read_bytes", _I64 * 4), ("threads", _I32),
                ("reserved", _I32), ("tile_gmacs", _F64)]


class _Rule(_Sized):
    _c_ = "qsim_rule"
    _fields_ = [("struct_size", _SIZE), ("pattern", _S), ("action", _I32), ("reserved", _I32)]


class _QuantizeOptions(_Sized):
    _c_ = "qsim_quantize_options"
    _fields_ = [("struct_size", _SIZE), ("rules", C.POINTER(_Rule)), ("rule_count", _SIZE),
                ("recipe", _P), ("decided", _P), ("progress", _ProgressFn), ("progress_user", _P),
                ("percentile", _F64), ("format", _I32), ("activation_type", _I32),
                ("weight_type", _I32), ("weight_scheme", _I32), ("activation_symmetric", _I32),
                ("method", _I32), ("reduce_range", _I32), ("mode", _I32), ("per_row", _I32),
                ("no_bias_correction", _I32), ("weight_block", _I32), ("no_gptq", _I32),
                ("keep_moments", _I32), ("split_curves", _I32)]


class _ObserverOptions(_Sized):
    _c_ = "qsim_observer_options"
    _fields_ = [("struct_size", _SIZE), ("bins", _I32), ("reserved", _I32)]


class _CalibrationOptions(_Sized):
    _c_ = "qsim_calibration_options"
    _fields_ = [("struct_size", _SIZE), ("tensors", _TEXTS), ("tensor_count", _SIZE),
                ("quantize", C.POINTER(_QuantizeOptions)), ("progress", _ProgressFn),
                ("progress_user", _P), ("bins", _I32), ("batch_axis", _I32)]


class _Outlier(_Sized):
    _c_ = "qsim_outlier"
    _fields_ = [("struct_size", _SIZE), ("sample", _I64), ("value", _F32), ("others", _F32),
                ("ratio", _F64)]


class _LayerInfo(_Sized):
    _c_ = "qsim_layer_info"
    _fields_ = [("struct_size", _SIZE), ("name", _S), ("op_type", _S), ("scheme", _I32),
                ("dtype", _I32), ("float_bytes", _I64), ("bytes", _I64)]


class _Judgement(_Sized):
    _c_ = "qsim_judgement"
    _fields_ = [("struct_size", _SIZE), ("loss", _F64), ("agreement", _F64), ("top1", _F64),
                ("sqnr", _F64), ("rows", _I64)]


class _Attempt(C.Structure):
    _c_ = "qsim_attempt"
    _fields_ = [("struct_size", _SIZE), ("what", _S), ("judgement", C.POINTER(_Judgement)),
                ("model", _P), ("recipe", _P), ("bytes", _I64), ("microseconds", _F64),
                ("floats", _I32), ("kept", _I32), ("met", _I32), ("mode", _I32)]


class _Unit(C.Structure):
    _c_ = "qsim_unit"
    _fields_ = [("struct_size", _SIZE), ("name", _S), ("op_type", _S), ("takes", _S),
                ("loss_alone", _F64), ("loss_gained", _F64), ("agreement", _F64), ("sqnr", _F64),
                ("float_bytes", _I64), ("bytes", _I64), ("float_us", _F64), ("us", _F64),
                ("before_knee", _I32), ("reserved", _I32)]


_AttemptFn = C.CFUNCTYPE(_I32, _P, C.POINTER(_Attempt))
_UnitFn = C.CFUNCTYPE(_I32, _P, C.POINTER(_Unit))


class _SearchOptions(_Sized):
    _c_ = "qsim_search_options"
    _fields_ = [("struct_size", _SIZE), ("methods", _S), ("inputs", C.POINTER(_Tensor)),
                ("input_count", _SIZE), ("score", _ScoreFn), ("score_user", _P),
                ("progress", _ProgressFn), ("progress_user", _P), ("seed", _U64),
                ("start_percentile", _F64), ("float_score", _F64), ("max_drop", _F64),
                ("steps", _I32), ("bits", _I32), ("inputs_per_batch", _I32), ("goal", _I32),
                ("labels", C.POINTER(C.c_int64)), ("label_count", _SIZE), ("seconds", _F64),
                ("attempt", _AttemptFn), ("attempt_user", _P), ("cost", _CostFn), ("cost_user", _P),
                ("no_classes", _I32), ("reserved", _I32)]


class _RecipeEntry(_Sized):
    _c_ = "qsim_recipe_entry"
    _fields_ = [("struct_size", _SIZE), ("name", _S), ("kind", _I32), ("action", _I32),
                ("dtype", _I32), ("symmetric", _I32), ("flags", _I32), ("granularity", _I32),
                ("block", _I64), ("rounding", _I32), ("bias_correction", _I32), ("method", _I32),
                ("low", _F32), ("high", _F32), ("reserved", _I32), ("percentile", _F64),
                ("shift", C.POINTER(C.c_float)), ("shift_count", _I64)]


class _Metrics(_Sized):
    _c_ = "qsim_metrics"
    _fields_ = [("struct_size", _SIZE), ("count", _U64), ("outside", _U64), ("rows", _U64),
                ("agree", _U64), ("max_abs", _F64), ("max_rel", _F64), ("signal", _F64),
                ("noise", _F64), ("dot", _F64), ("norm_b", _F64), ("nan_both", _U64),
                ("nan_one", _U64), ("worst", _U64), ("worst_a", _F64), ("worst_b", _F64)]


class _VerdictOptions(_Sized):
    _c_ = "qsim_verdict_options"
    _fields_ = [("struct_size", _SIZE), ("calibration", _P), ("method", _I32), ("seen", _I32),
                ("made_up", _I32), ("no_layers", _I32), ("no_classes", _I32), ("reserved", _I32)]


class _VerdictInfo(_Sized):
    _c_ = "qsim_verdict_info"
    _fields_ = [("struct_size", _SIZE), ("name", _S), ("tensor", _S), ("measure", _I32),
                ("grade", _I32), ("agreement", _F64), ("sqnr", _F64), ("cosine", _F64),
                ("before", _F64), ("rows", _U64)]


class _VerdictInputInfo(_Sized):
    _c_ = "qsim_verdict_input_info"
    _fields_ = [("struct_size", _SIZE), ("name", _S), ("least", _F64), ("greatest", _F64),
                ("mean", _F64), ("fits", _I32), ("reserved", _I32)]


class _VerdictLabelsInfo(_Sized):
    _c_ = "qsim_verdict_labels_info"
    _fields_ = [("struct_size", _SIZE), ("rows", _U64), ("right", _U64),
                ("right_quantized", _U64), ("confidence", _F64)]


class _Divergence(_Sized):
    _c_ = "qsim_divergence"
    _fields_ = [("struct_size", _SIZE), ("rows", _U64), ("agree", _U64), ("skipped", _U64),
                ("kl", _F64), ("signal", _F64), ("noise", _F64), ("answer", _I32),
                ("reserved", _I32)]


class _ArrayInfo(_Sized):
    _c_ = "qsim_array"
    _fields_ = [("struct_size", _SIZE), ("dims", _I64 * _MAX_RANK), ("offset", _SIZE),
                ("elements", _SIZE), ("bytes", _SIZE), ("dtype", _I32), ("rank", _I32),
                ("fortran", _I32), ("swapped", _I32)]


_ProfileFn = C.CFUNCTYPE(None, _P, C.POINTER(_ProfileEvent))
_LayerFn = C.CFUNCTYPE(_I32, _P, C.POINTER(_LayerInfo))
_TENSORS = C.POINTER(_Tensor)

# ---- functions: result, then parameters -------------------------------------------------------

_FUNCTIONS: Dict[str, Tuple[Any, ...]] = {
    # base.h
    "qsim_version_string": (_S,),
    "qsim_error_name": (_S, C.c_int),
    "qsim_error_text": (_S, C.c_int),
    "qsim_dtype_name": (_S, _I32),
    "qsim_isa_name": (_S, _I32),
    "qsim_isa_available": (_I32, _I32),
    "qsim_ctx_cancel": (None, _P, _I32),
    "qsim_ctx_limits": (C.c_int, _P, C.POINTER(_Limits)),
    "qsim_ctx_memory": (_U64, _P),
    "qsim_ctx_create": (C.c_int, C.POINTER(_CtxOptions), _OUT, _ERR),
    "qsim_ctx_free": (None, _P),
    "qsim_ctx_isa": (_I32, _P),
    "qsim_ctx_threads": (_I32, _P),
    # quant.h
    "qsim_dtype_limits": (C.c_int, _I32, _I32, _INTS, _INTS),
    "qsim_qparams_choose": (C.c_int, _F32, _F32, _I32, _I32, _FLOATS, _INTS),
    "qsim_qparams_count": (C.c_int, _I32, _LONGS, _I32, _I64, _SIZES),
    "qsim_qparams_measure": (C.c_int, _TENSORS, _I32, _I32, _I64, _I32, _SIZE, _FLOATS, _INTS, _ERR),
    "qsim_tensor_quantize": (C.c_int, _TENSORS, C.POINTER(_QParams), _TENSORS, _ERR),
    "qsim_tensor_dequantize": (C.c_int, _TENSORS, C.POINTER(_QParams), _TENSORS, _ERR),
    "qsim_observer_create": (C.c_int, _P, C.POINTER(_ObserverOptions), _OUT, _ERR),
    "qsim_observer_free": (None, _P),
    "qsim_observer_feed": (C.c_int, _P, _FLOATS, _SIZE),
    "qsim_observer_merge": (C.c_int, _P, _P),
    "qsim_observer_count": (_U64, _P),
    "qsim_observer_min": (_F32, _P),
    "qsim_observer_max": (_F32, _P),
    "qsim_observer_histogram": (C.c_int, _P, C.POINTER(_F64), C.POINTER(_F64), C.POINTER(_U64), _SIZE,
                                _SIZES),
    "qsim_observer_range": (C.c_int, _P, _I32, _F64, _I32, _I32, _FLOATS, _FLOATS),
    # op.h
    "qsim_requantize": (C.c_int, _P, _SIZE, _SIZE, _FLOATS, _SIZE, _I32, _I32, _I32, _I32, _P),
    "qsim_requantize_fixed": (C.c_int, _P, _SIZE, _SIZE, _INTS, _INTS, _SIZE, _I32, _I32, _I32, _I32,
                              _P),
    "qsim_fixed_from_float": (C.c_int, _F64, _INTS, _INTS),
    "qsim_conv2d": (C.c_int, _P, _TENSORS, _TENSORS, C.POINTER(_OpOptions), _TENSORS, _ERR),
    "qsim_linear": (C.c_int, _P, _TENSORS, _TENSORS, C.POINTER(_OpOptions), _TENSORS, _ERR),
    # data.h
    "qsim_idx_parse": (C.c_int, _P, _SIZE, C.POINTER(_ArrayInfo), _ERR),
    "qsim_npy_parse": (C.c_int, _P, _SIZE, _U64, C.POINTER(_ArrayInfo), _ERR),
    "qsim_array_read": (C.c_int, C.POINTER(_ArrayInfo), _P, _SIZE, _I64, _I64, _P, _SIZE, _ERR),
    "qsim_proto_parse": (C.c_int, _P, _SIZE, C.POINTER(_ArrayInfo), _ERR),
    "qsim_proto_read": (C.c_int, _P, _SIZE, _P, _SIZE, _ERR),
    "qsim_proto_write": (C.c_int, _TENSORS, _S, _P, _SIZE, _SIZES),
    # model.h
    "qsim_model_load": (C.c_int, _P, _S, C.POINTER(_LoadOptions), _OUT, _ERR),
    "qsim_model_load_memory": (C.c_int, _P, _P, _SIZE, C.POINTER(_LoadOptions), _OUT, _ERR),
    "qsim_model_check": (C.c_int, _P, _ProblemFn, _P),
    "qsim_model_save": (C.c_int, _P, _S, C.POINTER(_SaveOptions), _ERR),
    "qsim_model_save_memory": (C.c_int, _P, _P, _SIZE, _SIZES, _ERR),
    "qsim_model_free": (None, _P),
    "qsim_model_input_count": (_I32, _P),
    "qsim_model_output_count": (_I32, _P),
    "qsim_model_value_count": (_I32, _P),
    "qsim_model_node_count": (_I32, _P),
    "qsim_model_input": (C.c_int, _P, _I32, C.POINTER(_ValueInfo)),
    "qsim_model_output": (C.c_int, _P, _I32, C.POINTER(_ValueInfo)),
    "qsim_model_value": (C.c_int, _P, _I32, C.POINTER(_ValueInfo)),
    "qsim_model_node": (C.c_int, _P, _I32, C.POINTER(_NodeInfo)),
    "qsim_model_attr": (C.c_int, _P, _I32, _I32, C.POINTER(_AttrInfo)),
    "qsim_operator": (C.c_int, _P, _I32, C.POINTER(_OperatorInfo)),
    "qsim_model_opset": (_I64, _P, _S),
    "qsim_model_ir_version": (_I64, _P),
    "qsim_model_bytes": (_I64, _P),
    "qsim_model_external_file": (_S, _P, _I32),
    "qsim_model_parameters": (_I64, _P),
    "qsim_model_parameter_bytes": (_I64, _P),
    "qsim_model_metadata_count": (_I32, _P),
    "qsim_model_metadata_key": (_S, _P, _I32),
    "qsim_model_metadata_value": (_S, _P, _I32),
    "qsim_model_hash": (C.c_int, _P, _S),
    "qsim_model_convert_to": (C.c_int, _P, _I32, _OUT, _ERR),
    "qsim_model_integer_io": (C.c_int, _P, _I32, _OUT, _ERR),
    "qsim_model_optimize": (C.c_int, _P, _I32, _OUT, _ERR),
    "qsim_model_scale": (C.c_int, _P, _S, C.POINTER(_F64), C.POINTER(C.c_int64), _ERR),
    "qsim_model_upgrade": (C.c_int, _P, _I32, _OUT, _ERR),
    "qsim_builder_create": (C.c_int, _P, _I32, _S, _OUT, _ERR),
    "qsim_builder_import": (C.c_int, _P, _S, _I32),
    "qsim_builder_input_as": (C.c_int, _P, _S, _S),
    "qsim_builder_output_as": (C.c_int, _P, _S, _S),
    "qsim_builder_constant": (C.c_int, _P, _S, _TENSORS),
    "qsim_builder_node": (C.c_int, _P, _S, _S, _S, _S, _S),
    "qsim_builder_attr_int": (C.c_int, _P, _S, _I64),
    "qsim_builder_attr_float": (C.c_int, _P, _S, _F32),
    "qsim_builder_attr_string": (C.c_int, _P, _S, _S),
    "qsim_builder_attr_ints": (C.c_int, _P, _S, _LONGS, _SIZE),
    "qsim_builder_attr_floats": (C.c_int, _P, _S, _FLOATS, _SIZE),
    "qsim_builder_attr_strings": (C.c_int, _P, _S, _TEXTS, _SIZE),
    "qsim_builder_attr_tensor": (C.c_int, _P, _S, _TENSORS),
    "qsim_builder_metadata": (C.c_int, _P, _S, _S),
    "qsim_builder_finish": (C.c_int, _P, _OUT, _ERR),
    "qsim_builder_free": (None, _P),
    # session.h, profile.h
    "qsim_session_create": (C.c_int, _P, C.POINTER(_SessionOptions), _OUT, _ERR),
    "qsim_session_free": (None, _P),
    "qsim_session_input_count": (_I32, _P),
    "qsim_session_output_count": (_I32, _P),
    "qsim_session_input_name": (_S, _P, _I32),
    "qsim_session_output_name": (_S, _P, _I32),
    "qsim_session_bytes": (_SIZE, _P),
    "qsim_session_node_integer": (_I32, _P, _I32),
    "qsim_run_create": (C.c_int, _P, _OUT, _ERR),
    "qsim_run_free": (None, _P),
    "qsim_run_reserve": (C.c_int, _P, _TENSORS, _SIZE, _ERR),
    "qsim_run_execute": (C.c_int, _P, _TENSORS, _SIZE, _TENSORS, _SIZE, _ERR),
    "qsim_run_set_seed": (None, _P, _U64),
    "qsim_run_cancel": (None, _P),
    "qsim_run_arena_bytes": (_SIZE, _P),
    "qsim_run_step_count": (_I32, _P),
    "qsim_run_step": (C.c_int, _P, _I32, C.POINTER(_StepInfo)),
    "qsim_run_step_tensor": (C.c_int, _P, _I32, _I32, _LONGS, _TENSORS),
    "qsim_run_profile_begin": (C.c_int, _P, _ProfileFn, _P),
    "qsim_run_profile_end": (_I64, _P),
    "qsim_machine_measure": (C.c_int, _P, C.POINTER(_Machine), _ERR),
    # package.h
    "qsim_role_name": (_S, _I32),
    "qsim_package_open": (C.c_int, _P, _S, _I32, _OUT, _ERR),
    "qsim_package_open_memory": (C.c_int, _P, _P, _SIZE, _S, _OUT, _ERR),
    "qsim_package_free": (None, _P),
    "qsim_package_count": (_I32, _P),
    "qsim_package_get": (C.c_int, _P, _I32, C.POINTER(_PackageEntry)),
    "qsim_package_find": (_I32, _P, _S),
    "qsim_package_find_role": (_I32, _P, _I32),
    "qsim_package_data": (C.c_int, _P, _I32, _OUT, _SIZES, _ERR),
    "qsim_package_model": (C.c_int, _P, _S, C.POINTER(_LoadOptions), _OUT, _ERR),
    "qsim_package_unpack": (C.c_int, _P, _S, _I32, _ERR),
    "qsim_packer_create": (C.c_int, _P, _OUT, _ERR),
    "qsim_packer_free": (None, _P),
    "qsim_packer_model": (C.c_int, _P, _S, _S, _ERR),
    "qsim_packer_add": (C.c_int, _P, _I32, _S, _P, _SIZE, _ERR),
    "qsim_packer_option": (C.c_int, _P, _S, _S, _ERR),
    "qsim_packer_save": (C.c_int, _P, _S, _I32, _ERR),
    # recipe.h
    "qsim_recipe_create": (C.c_int, _P, _OUT, _ERR),
    "qsim_recipe_load": (C.c_int, _P, _S, _OUT, _ERR),
    "qsim_recipe_load_memory": (C.c_int, _P, _P, _SIZE, _S, _OUT, _ERR),
    "qsim_recipe_free": (None, _P),
    "qsim_recipe_save": (C.c_int, _P, _S, _I32, _ERR),
    "qsim_recipe_text": (C.c_int, _P, _P, _SIZE, _SIZES, _ERR),
    "qsim_recipe_count": (_I32, _P),
    "qsim_recipe_get": (C.c_int, _P, _I32, C.POINTER(_RecipeEntry)),
    "qsim_recipe_find": (_I32, _P, _I32, _S),
    "qsim_recipe_set": (C.c_int, _P, C.POINTER(_RecipeEntry), _ERR),
    "qsim_recipe_merge": (C.c_int, _P, _P, _ERR),
    "qsim_recipe_model": (_S, _P),
    "qsim_recipe_calibration": (_S, _P),
    # ptq.h
    "qsim_calibration_create": (C.c_int, _P, C.POINTER(_CalibrationOptions), _OUT, _ERR),
    "qsim_calibration_feed": (C.c_int, _P, _TENSORS, _SIZE, _ERR),
    "qsim_calibration_merge": (C.c_int, _P, _P, _ERR),
    "qsim_calibration_save": (C.c_int, _P, _S, _I32, _ERR),
    "qsim_calibration_load": (C.c_int, _P, _S, _OUT, _ERR),
    "qsim_calibration_load_memory": (C.c_int, _P, _P, _SIZE, _S, _OUT, _ERR),
    "qsim_calibration_free": (None, _P),
    "qsim_calibration_samples": (_I64, _P),
    "qsim_calibration_count": (_I32, _P),
    "qsim_calibration_name": (_S, _P, _I32),
    "qsim_calibration_observer": (_P, _P, _I32),
    "qsim_calibration_range": (C.c_int, _P, _S, _I32, _F64, _I32, _I32, _FLOATS, _FLOATS),
    "qsim_calibration_outlier": (C.c_int, _P, _I32, C.POINTER(_Outlier)),
    "qsim_calibration_model": (_S, _P),
    "qsim_quantize": (C.c_int, _P, _P, C.POINTER(_QuantizeOptions), _OUT, _ERR),
    "qsim_quantize_layers": (_I32, _P, _P, C.POINTER(_QuantizeOptions), _LayerFn, _P, _ERR),
    "qsim_search_method": (_S, _I32),
    "qsim_search_method_needs_inputs": (_I32, _I32),
    "qsim_search": (C.c_int, _P, _P, C.POINTER(_QuantizeOptions), C.POINTER(_SearchOptions), _P,
                    C.POINTER(_F64), _ERR),
    "qsim_sensitivity": (_I32, _P, _P, C.POINTER(_QuantizeOptions), C.POINTER(_SearchOptions),
                         _UnitFn, _P, C.POINTER(_Judgement), _ERR),
    "qsim_metrics_add": (C.c_int, C.POINTER(_Metrics), _TENSORS, _TENSORS, _F64, _F64),
    "qsim_metrics_sqnr": (_F64, C.POINTER(_Metrics)),
    "qsim_metrics_cosine": (_F64, C.POINTER(_Metrics)),
    "qsim_divergence_add": (C.c_int, C.POINTER(_Divergence), _TENSORS, _TENSORS),
    "qsim_divergence_loss": (_F64, C.POINTER(_Divergence)),
    "qsim_divergence_agreement": (_F64, C.POINTER(_Divergence)),
    "qsim_answer_of": (_I32, _S, _I32),
    "qsim_mcnemar": (_F64, _U64, _U64),
    # verdict.h
    "qsim_verdict_create": (C.c_int, _P, _P, C.POINTER(_VerdictOptions), _OUT, _ERR),
    "qsim_verdict_free": (None, _P),
    "qsim_verdict_feed": (C.c_int, _P, _TENSORS, _SIZE, _ERR),
    "qsim_verdict_label": (C.c_int, _P, C.POINTER(C.c_int64), _SIZE, _ERR),
    "qsim_verdict_labels": (C.c_int, _P, C.POINTER(_VerdictLabelsInfo)),
    "qsim_verdict_grade": (_I32, _P),
    "qsim_verdict_samples": (_I64, _P),
    "qsim_verdict_output_count": (_I32, _P),
    "qsim_verdict_output": (C.c_int, _P, _I32, C.POINTER(_VerdictInfo)),
    "qsim_verdict_layer_count": (_I32, _P),
    "qsim_verdict_layer": (C.c_int, _P, _I32, C.POINTER(_VerdictInfo)),
    "qsim_verdict_input": (C.c_int, _P, C.POINTER(_VerdictInputInfo)),
    "qsim_verdict_warning": (_S, _P, _I32, C.POINTER(_S)),
}


def _declare_all() -> None:
    missing = []
    for name, (result, *parameters) in _FUNCTIONS.items():
        try:
            function = getattr(_lib, name)
        except AttributeError:
            missing.append(name)
            continue
        function.restype, function.argtypes = result, parameters
    if missing:
        raise ImportError(f"{_lib._name} is older than this module: it has no {', '.join(missing)}")


_declare_all()


def version() -> str:
    """Version of the library that is loaded, for instance "0.1.0"."""
    return _text(_lib.qsim_version_string())


def _without_nul(data: bytes, what: object) -> bytes:
    if b"\0" in data:  # C would take it for the end
        raise ValueError(f"a NUL in {what!r}")
    return data


def _utf8(text: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"a text is needed, not {type(text).__name__}")
    return _without_nul(text.encode(), text)


def _path(path: Union[str, "os.PathLike[str]"]) -> bytes:
    return _without_nul(os.fsencode(path), path)


def _text(value: Any) -> str:
    return str(value.decode()) if value else ""
