#!/bin/sh
# SPDX-License-Identifier: MIT
# Networks of pictures are quantized on pixel values that they were trained on and on other values; a table
# has what the verdict says of the input. `ok`: right values, no warning. Wrong values: `off`: a warning, and
# other values to try, among them the right ones, if the row ends in them; `raw`: the warning calls them
# raw pixels; `?`: nothing in the model tells, and the verdict says so.
# With labels: `right`: no warning; `wrong`: a warning by labels; `moved`: labels of other classes.
# Usage: judged.sh QSIM SOURCE
set -eu
qsim=$1 shared=${QSIM_SHARED:-$2/../shared}
models=$shared/models photos=$shared/data/images fashion=$shared/data/fashion-mnist/t10k-images-idx3-ubyte.gz
[ -d "$photos" ] || { [ "${QSIM_REQUIRE_SHARED:-0}" = 1 ] && exit 1; echo "skipped: no shared data" && exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
labels=$shared/data/fashion-mnist/t10k-labels-idx1-ubyte.gz
gunzip -c "$labels" >"$dir/labels"
{ head -c 8 "$dir/labels" && tail -c +9 "$dir/labels" | tr '\000-\011' '\001-\011\000'; } >"$dir/moved"
imagenet=mean=0.485:0.456:0.406,std=0.229:0.224:0.225
while read -r wanted model preprocess values; do
    case $model in fashion* | mnist*) data=$fashion limit=32 ;; *) data=$photos limit=3 ;; esac
    case $wanted in right | wrong) data=$fashion,$labels limit=160 ;; moved) data=$fashion,$dir/moved limit=160 ;; esac
    "$qsim" quantize "$models/$model.onnx" --data "$data" --limit $limit --held-out 128 --preprocess "$preprocess" \
        -o "$dir/q.onnx" -f >"$dir/out" 2>"$dir/err" || {
        grep -q 'without lib' "$dir/err" && echo "skipped: $(cat "$dir/err")" && exit 77
        cat "$dir/err" && exit 1
    }
    grade=$(sed -n 's/^verdict *\([a-z]*\),.*/\1/p' "$dir/out")
    by_labels=$(sed -n 's/^qsim: warning: \(the float model is right on.*\)/\1/p' "$dir/err")
    why=$(sed -n 's/^qsim: warning: \(.*trained on.*\)/\1/p' "$dir/err" | head -n 1)
    printf '%-3s %-34s %-50s %-8s %s\n' "$wanted" "$model" "$preprocess" "$grade" "${why:-$(sed -n 's/^ *input .*; //p' "$dir/out")}"
    case $wanted in
    right) [ -z "$why$by_labels" ] && grep -q '^ *accuracy .* of 128 labels' "$dir/out" || { echo "FAILED: a warning" && failed=1; } ;;
    wrong | moved)
        echo "    $by_labels"
        case $wanted,$by_labels in
        'wrong,'*'are its input'* | moved,*'labels'*) [ "$grade" != good ] ;;
        *) false ;;
        esac || { echo "FAILED: no warning by labels" && failed=1; }
        ;;
    ok) [ -z "$why" ] || { echo "FAILED: a warning" && failed=1; } ;;
    raw) echo "$why" | grep -q '^the input is raw pixels' || { echo "FAILED: not named" && failed=1; } ;;
    '?') grep -q '^ *input .*; not judged: ' "$dir/out" || { echo "FAILED: judged" && failed=1; } ;;
    *)
        [ -n "$why" ] && [ "$grade" != good ] || { echo "FAILED: no warning" && failed=1; }
        sed -n '/^next/,$p' "$dir/out" | grep -q -e "--preprocess .*$values" || { echo "FAILED: no other values to try" && failed=1; }
        ! grep -qE -e '--method|qsim auto' "$dir/out" || { echo "FAILED: other methods" && failed=1; }
        ;;
    esac
done <<END
ok fashion_lenetlite scale=1/255
off fashion_lenetlite scale=1
? fashion_lenetlite mean=0.5,std=0.5
ok fashion_resnet8 scale=1/255
off fashion_resnet8 scale=1
off fashion_resnet8 mean=0.5,std=0.5
ok fashion_mobilenetv2_tiny scale=1/255
off fashion_mobilenetv2_tiny scale=1
off fashion_mobilenetv2_tiny mean=0.5,std=0.5
ok mnist-8 scale=1/255
off mnist-8 scale=1
ok mobilenet_v1_025_224_imagenet tf
off mobilenet_v1_025_224_imagenet fit=crop mean=0.5,std=0.5
off mobilenet_v1_025_224_imagenet imagenet mean=0.5,std=0.5
off mobilenet_v1_025_224_imagenet caffe
ok coral_mobilenet_v2_1.0_224_fp32deq tf
off coral_mobilenet_v2_1.0_224_fp32deq fit=crop,scale=1
off coral_mobilenet_v2_1.0_224_fp32deq caffe
? coral_mobilenet_v2_1.0_224_fp32deq fit=crop
? coral_mobilenet_v2_1.0_224_fp32deq imagenet
ok shufflenet-v2-12_fp32_dequantized imagenet
off shufflenet-v2-12_fp32_dequantized fit=crop,scale=1
off shufflenet-v2-12_fp32_dequantized caffe
? shufflenet-v2-12_fp32_dequantized fit=crop
? shufflenet-v2-12_fp32_dequantized tf
ok squeezenet1.1_fp32_from_fp16 caffe
off squeezenet1.1_fp32_from_fp16 fit=crop
off squeezenet1.1_fp32_from_fp16 imagenet
raw squeezenet1.1_fp32_from_fp16 fit=crop,scale=1
ok cifar_resnet20_akamaster imagenet
off cifar_resnet20_akamaster fit=crop $imagenet
off cifar_resnet20_akamaster tf $imagenet
off cifar_resnet20_akamaster fit=crop,scale=1
ok mlptiny_ic_resnet8_fp32 fit=crop,scale=1
off mlptiny_ic_resnet8_fp32 fit=crop
off mlptiny_ic_resnet8_fp32 imagenet
ok ultraface_RFB-320_simplified fit=stretch,scale=1,mean=127,std=128
off ultraface_RFB-320_simplified fit=stretch,scale=1
ok yolox_nano yolox
off yolox_nano yolox,scale=1/255
off yolox_nano fit=stretch,$imagenet
ok super_resolution_onnxmodels fit=crop
off super_resolution_onnxmodels fit=crop,scale=1
ok ppocrv3_det_ch resize=320x320,$imagenet
off ppocrv3_det_ch resize=320x320,scale=1
right fashion_lenetlite scale=1/255
wrong fashion_lenetlite mean=0.5,std=0.5
wrong fashion_lenetlite mean=0.45,std=0.226
moved fashion_lenetlite scale=1/255
right fashion_resnet8 scale=1/255
wrong fashion_resnet8 mean=0.5,std=0.5
moved fashion_resnet8 scale=1/255
right fashion_mobilenetv2_tiny scale=1/255
wrong fashion_mobilenetv2_tiny mean=0.5,std=0.5
wrong mnist-8 scale=1/255
END
exit $failed
