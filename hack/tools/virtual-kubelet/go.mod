module spillway.dev/hack/tools/virtual-kubelet

go 1.26.0

tool github.com/virtual-kubelet/virtual-kubelet/internal/test/e2e

require github.com/virtual-kubelet/virtual-kubelet v1.13.0 // indirect
