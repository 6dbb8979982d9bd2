module carillon.tests/xxl-job-probe

go 1.19

require (
	github.com/go-basic/ipv4 v1.0.0 // indirect
	github.com/xxl-job/xxl-job-executor-go v1.2.0
)
