// An xxl-job executor on npm's xxl-job, for carillon's system tests.
//
// Its handlers do what their names say, and tell each start, interrupt and end as one line of JSON; see ../README.md. The
// library prints on stdout, so the lines go to descriptor 3, which the launcher points at the stdout that it was given.

import fs from 'node:fs'
import process from 'node:process'
import { setTimeout as wait } from 'node:timers/promises'
import express from 'express'
import { createXxlJobExecutor } from 'xxl-job'

const EVENTS = 3
const SLOW_EXIT_WAITS_MS = 60_000
// The library can only be asked whether a run was killed.
const LOOK_MS = 10

function tell(event, fields = {}) {
  fs.writeSync(EVENTS, `${JSON.stringify({ event, ...fields, at: Date.now() })}\n`)
}

function needed(name) {
  const value = process.env[name]
  if (!value) {
    console.error(`probe: ${name} is missing`)
    process.exit(2)
  }
  return value
}

class Failure extends Error {}
class Interrupted extends Error {}

/** A run as its handler sees it. */
class Run {
  constructor(handler, logger, request) {
    this.logger = logger
    this.request = request
    this.param = request.executorParams ?? ''
    this.fields = {
      handler,
      log: request.logId,
      param: this.param,
      index: request.broadcastIndex,
      total: request.broadcastTotal,
    }
  }

  write(line) {
    this.logger.info(line)
  }

  async pause(ms) {
    const until = Date.now() + ms
    while (Date.now() < until) {
      await wait(Math.min(LOOK_MS, until - Date.now()))
      if (this.request.isKill()) {
        tell('interrupt', this.fields)
        throw new Interrupted('interrupted')
      }
    }
  }
}

const handlers = {
  async echo(run) {
    run.write(run.param)
    return run.param
  },
  async shard(run) {
    const shard = `${run.fields.index}/${run.fields.total}`
    run.write(shard)
    return shard
  },
  async sleep(run) {
    await run.pause(Number(run.param))
    return 'slept'
  },
  async stubborn(run) {
    const until = Date.now() + Number(run.param)
    try {
      await run.pause(Number(run.param))
    } catch {
      await wait(Math.max(0, until - Date.now()))
    }
    return 'stubborn to the end'
  },
  async fail(run) {
    throw new Failure(run.param || 'asked to fail')
  },
  async throw(run) {
    throw new TypeError(run.param || 'asked to throw')
  },
  async lines(run) {
    const [count, ms] = run.param.split(',')
    for (let line = 1; line <= Number(count); line++) {
      run.write(`line ${line} of ${count}`)
      if (ms) await run.pause(Number(ms))
    }
    return `${count} lines`
  },
  async slow_exit(run) {
    try {
      await run.pause(SLOW_EXIT_WAITS_MS)
    } catch (interrupted) {
      await wait(Number(run.param))
      throw interrupted
    }
    return 'nobody asked'
  },
}

const running = new Set()

async function told(run, body) {
  tell('start', run.fields)
  running.add(run)
  let result = 'thrown'
  try {
    const answer = await body(run)
    result = 'succeeded'
    return answer
  } catch (error) {
    if (error instanceof Failure) result = 'failed'
    if (error instanceof Interrupted) result = 'interrupted'
    throw error
  } finally {
    running.delete(run)
    tell('end', { ...run.fields, result })
  }
}

const jobHandlers = new Map(
  Object.entries(handlers).map(([name, body]) => [
    name,
    (logger, request) => told(new Run(name, logger, request), body),
  ]),
)

const logs = needed('PROBE_LOGS')
fs.mkdirSync(logs, { recursive: true })
// The library logs into `logs/` of the current folder.
process.chdir(logs)
const ip = process.env.PROBE_IP ?? '127.0.0.1'
const port = Number(needed('PROBE_PORT'))

const app = express()
app.use(express.json())
const executor = createXxlJobExecutor({
  app,
  appType: 'express',
  accessToken: process.env.PROBE_TOKEN,
  baseUrl: `http://${ip}:${port}`,
  route: '/job',
  executorKey: needed('PROBE_APP'),
  scheduleCenterUrl: needed('PROBE_ADMIN').replace(/\/$/, ''),
  jobHandlers,
  logLocalName: 'probe',
  logStorage: 'local',
})

// The library leaves failed registrations and callbacks to nobody, which would end the process.
process.on('unhandledRejection', (error) => {
  if (process.env.PROBE_DIES === '1') throw error
  tell('unhandled', { error: String(error) })
})

process.on('SIGTERM', async () => {
  tell('stopping')
  await executor.cancel().catch(error => tell('unhandled', { error: String(error) }))
  while (process.env.PROBE_GRACEFUL === '1' && running.size > 0) await wait(LOOK_MS)
  // What has just ended is called back first.
  await wait(200)
  tell('stopped')
  process.exit(0)
})

app.listen(port, ip, () => {
  tell('up')
  executor.initialization()
})
