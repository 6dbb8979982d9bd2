// An xxl-job executor on xxl-job-executor-go, for carillon's system tests.
//
// Its handlers do what their names say, and tell each start, interrupt and end on stdout as one line of JSON; see ../README.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	xxl "github.com/xxl-job/xxl-job-executor-go"
)

const slowExitWaits = 60 * time.Second

type line struct {
	Event   string  `json:"event"`
	Handler string  `json:"handler,omitempty"`
	Log     int64   `json:"log,omitempty"`
	Param   *string `json:"param,omitempty"`
	Index   *int64  `json:"index,omitempty"`
	Total   *int64  `json:"total,omitempty"`
	Result  string  `json:"result,omitempty"`
	At      int64   `json:"at"`
}

var stdout sync.Mutex

func tell(l line) {
	stdout.Lock()
	defer stdout.Unlock()
	l.At = time.Now().UnixMilli()
	// Encode ends the line, and os.Stdout has no buffer.
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(l)
}

// run is one run of a handler.
type run struct {
	handler string
	ctx     context.Context
	request *xxl.RunReq
	logs    string
}

func (r *run) tell(event, result string) {
	q := r.request
	tell(line{Event: event, Handler: r.handler, Log: q.LogID, Param: &q.ExecutorParams,
		Index: &q.BroadcastIndex, Total: &q.BroadcastTotal, Result: result})
}

// pause reports whether nobody asked the run to stop.
func (r *run) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.ctx.Done():
		r.tell("interrupt", "")
		return false
	}
}

// The library leaves it to its user to keep what a run logs: here a file for each run.
func logFile(logs string, logID int64) string {
	return filepath.Join(logs, strconv.FormatInt(logID, 10)+".log")
}

func (r *run) write(text string) {
	file, err := os.OpenFile(logFile(r.logs, r.request.LogID), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		log.Println(err)
		return
	}
	defer file.Close()
	_, _ = fmt.Fprintln(file, text)
}

func milliseconds(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return time.Duration(n) * time.Millisecond
}

// failure is what a handler panics with to answer a failure: the library knows no other way.
type failure string

// A handler returns its answer, and whether it went on to its end.
var handlers = map[string]func(r *run) (answer string, whole bool){
	"echo": func(r *run) (string, bool) {
		r.write(r.request.ExecutorParams)
		return r.request.ExecutorParams, true
	},
	"shard": func(r *run) (string, bool) {
		answer := fmt.Sprintf("%d/%d", r.request.BroadcastIndex, r.request.BroadcastTotal)
		r.write(answer)
		return answer, true
	},
	"sleep": func(r *run) (string, bool) {
		if !r.pause(milliseconds(r.request.ExecutorParams)) {
			return "interrupted", false
		}
		return "slept", true
	},
	"stubborn": func(r *run) (string, bool) {
		until := time.Now().Add(milliseconds(r.request.ExecutorParams))
		if !r.pause(time.Until(until)) {
			time.Sleep(time.Until(until))
		}
		return "stubborn to the end", true
	},
	"fail": func(r *run) (string, bool) {
		if r.request.ExecutorParams == "" {
			panic(failure("asked to fail"))
		}
		panic(failure(r.request.ExecutorParams))
	},
	"throw": func(r *run) (string, bool) {
		if r.request.ExecutorParams == "" {
			panic("asked to throw")
		}
		panic(r.request.ExecutorParams)
	},
	"lines": func(r *run) (string, bool) {
		count, wait, waits := strings.Cut(r.request.ExecutorParams, ",")
		n, err := strconv.Atoi(count)
		if err != nil {
			panic(err)
		}
		for i := 1; i <= n; i++ {
			r.write(fmt.Sprintf("line %d of %d", i, n))
			if waits && !r.pause(milliseconds(wait)) {
				return "interrupted", false
			}
		}
		return count + " lines", true
	},
	"slow_exit": func(r *run) (string, bool) {
		if !r.pause(slowExitWaits) {
			time.Sleep(milliseconds(r.request.ExecutorParams))
			return "interrupted", false
		}
		return "nobody asked", true
	},
}

// told runs a handler between the lines that tell of it.
func told(r *run, body func(r *run) (string, bool)) string {
	r.tell("start", "")
	result := "succeeded"
	defer func() {
		thrown := recover()
		if _, asked := thrown.(failure); asked {
			result = "failed"
		} else if thrown != nil {
			result = "thrown"
		}
		r.tell("end", result)
		if thrown != nil {
			panic(thrown)
		}
	}()
	answer, whole := body(r)
	if !whole {
		result = "interrupted"
	}
	return answer
}

// readLog answers the lines from the one that is asked for, which counts from 1.
func readLog(logs string, request *xxl.LogReq) *xxl.LogRes {
	content := xxl.LogResContent{FromLineNum: request.FromLineNum}
	file, err := os.Open(logFile(logs, request.LogID))
	if err != nil {
		content.LogContent, content.IsEnd = "no log", true
		return &xxl.LogRes{Code: xxl.SuccessCode, Content: content}
	}
	defer file.Close()
	var text strings.Builder
	scanner := bufio.NewScanner(file)
	for number := 1; scanner.Scan(); number++ {
		content.ToLineNum = number
		if number >= request.FromLineNum {
			text.WriteString(scanner.Text() + "\n")
		}
	}
	content.LogContent = text.String()
	return &xxl.LogRes{Code: xxl.SuccessCode, Content: content}
}

// stderr takes the library's own words, so that stdout is the probe's alone.
type stderr struct{}

func (stderr) Info(format string, a ...interface{})  { log.Printf(format, a...) }
func (stderr) Error(format string, a ...interface{}) { log.Printf("ERROR "+format, a...) }

func needed(name string) string {
	value := os.Getenv(name)
	if value == "" {
		fmt.Fprintf(os.Stderr, "probe: %s is missing\n", name)
		os.Exit(2)
	}
	return value
}

func main() {
	logs := needed("PROBE_LOGS")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		log.Fatal(err)
	}
	ip := os.Getenv("PROBE_IP")
	if ip == "" {
		ip = "127.0.0.1"
	}
	executor := xxl.NewExecutor(
		xxl.ServerAddr(strings.TrimSuffix(needed("PROBE_ADMIN"), "/")),
		xxl.AccessToken(os.Getenv("PROBE_TOKEN")),
		xxl.ExecutorIp(ip),
		xxl.ExecutorPort(needed("PROBE_PORT")),
		xxl.RegistryKey(needed("PROBE_APP")),
		xxl.SetLogger(stderr{}),
	)
	executor.Init()
	executor.LogHandler(func(request *xxl.LogReq) *xxl.LogRes { return readLog(logs, request) })
	var running sync.WaitGroup
	for name, body := range handlers {
		name, body := name, body
		executor.RegTask(name, func(ctx context.Context, request *xxl.RunReq) string {
			running.Add(1)
			defer running.Done()
			return told(&run{handler: name, ctx: ctx, request: request, logs: logs}, body)
		})
	}
	tell(line{Event: "up"})
	// It returns after SIGTERM, once it has taken itself off the registry.
	_ = executor.Run()
	if os.Getenv("PROBE_GRACEFUL") == "1" {
		running.Wait()
		// Its callback follows the handler.
		time.Sleep(time.Second)
	}
	tell(line{Event: "stopped"})
}
