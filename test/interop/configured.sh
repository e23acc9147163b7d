#!/bin/sh
# SPDX-License-Identifier: MIT
# ONNX Runtime loads and runs what qsim run-config writes in every mode and form, with the same results as qsim.
# Skipped by name where the runtime is not there. Usage: configured.sh SOURCE_ROOT QSIM FOLDER MAKE_LINEAR
set -eu
root=$1 qsim=$2 peer=$3 linear=$4
. "$root/test/interop/ort.sh"

data='"data_config": {"data_dir": "random", "limit": 8}'
check() { # NAME MODEL INPUT
    cat >"$work/$1.json" <<END
{
  "input_model": {"type": "OnnxModel", "model_path": "$2"},
  "passes": {
    "dynamic": {"type": "OnnxDynamicQuantization", "config": {"weight_type": "QInt8"}},
    "unsigned": {"type": "OnnxQuantization", "quant_mode": "dynamic", "weight_type": "QUInt8"},
    "weights": {"type": "OnnxWeightQuantization"},
    "qdq": {"type": "OnnxStaticQuantization", "quant_format": "QDQ", "per_channel": true, $data},
    "qoperator": {"type": "OnnxStaticQuantization", "quant_format": "QOperator", "per_channel": false, $data},
    "corrected": {"type": "OnnxDynamicQuantization", $data},
    "searched": {"type": "QsimQuantize", "search": "greedy", "set": "*=int8", $data},
    "narrow": {"type": "QsimQuantize", "mode": "weights", "weights": "int4", "block": 32, $data},
    "chosen": {"type": "QsimAuto", "budget": 5, $data}
  },
  "pass_flows": [["dynamic"], ["unsigned"], ["weights"], ["qdq"], ["qoperator"], ["corrected"], ["searched"], ["narrow"], ["chosen"]],
  "output_dir": "$work/$1"
}
END
    "$qsim" run-config -q "$work/$1.json"
    for flow in dynamic unsigned weights qdq qoperator corrected searched narrow chosen; do
        # Without the runtime's own optimizations: from the basic level on, it quantizes the activations of
        # products whose weights are dequantized.
        agree "$work/$1/$flow/model.onnx" disabled \
            within=0.001 "$3"
    done
}
"$linear" -q -o "$work/linear.onnx"
check linear "$work/linear.onnx" X=3,64
check lenetlite "$(realpath "$models/fashion_lenetlite.onnx")" input=2,1,28,28
