#!/usr/bin/env node
// pg-boss as a peer of the program `durable`: URL NAME CASE SETTING..
//
// A job is sent by a call of its own, as programs do. One worker polls every half second, which is
// the shortest period that pg-boss allows, and fetches up to 1,000 jobs at a time.
'use strict'
const PgBoss = require('pg-boss')
const { Client } = require('pg')

const [url, peer, workload, ...words] = process.argv.slice(2)
const settings = Object.fromEntries(words.map((word) => word.split('=')))
const number = (name, value) => Number(settings[name] ?? value)
const payload = { payload: '7'.repeat(100) }
const queue = 'bench'
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const print = (params, value, unit) => console.log(`${peer} ${workload} ${params} ${value.toFixed(3)} ${unit}`)
const unavailable = (params, unit, why) => console.log(`${peer} ${workload} ${params} n/a ${unit} ${why}`)

async function start (onRun) {
  const boss = new PgBoss({ connectionString: url, max: 20 })
  boss.on('error', (error) => console.error(error.message))
  await boss.start()
  await boss.createQueue(queue)
  await boss.work(queue, { pollingIntervalSeconds: 0.5, batchSize: 1000 }, async (jobs) => jobs.forEach(onRun))
  return boss
}

const send = (boss, delay) => {
  const due = Date.now() + delay
  return boss.send(queue, { ...payload, due }, { startAfter: new Date(due) })
}

async function inserts () {
  const [boss, end] = [await start(() => {}), Date.now() + number('ms', 3000)]
  let count = 0
  const caller = async () => { while (Date.now() < end) { await send(boss, 3_600_000); count++ } }
  const begin = Date.now()
  await Promise.all(Array.from({ length: 4096 }, caller))
  print('open=4096', count * 1000 / (Date.now() - begin), 'inserts/s')
}

async function lives () {
  const n = number('n', 512)
  let count = 0
  const boss = await start(() => { count++; boss.send(queue, payload) })
  await Promise.all(Array.from({ length: n }, () => boss.send(queue, payload)))
  while (count < n) await sleep(10)
  const [begin, before] = [Date.now(), count]
  await sleep(number('ms', 3000))
  print(`nodes=1,in-flight=${n}`, (count - before) * 1000 / (Date.now() - begin), 'lives/s')
}

async function lag () {
  const [rate, span] = [number('rate', 100), number('ms', 3000)]
  const lags = []
  const boss = await start((job) => lags.push((Date.now() - job.data.due) * 1000))
  const [begin, total] = [Date.now(), rate * span / 1000]
  for (let sent = 0; sent < total; await sleep(1)) {
    const wanted = Math.min(total, (Date.now() - begin) * rate / 1000)
    for (; sent < wanted; sent++) send(boss, 50 + Math.random() * 950)
  }
  for (let i = 0; i < 400 && lags.length < total; i++) await sleep(10)
  lags.sort((a, b) => a - b)
  const overdue = total - lags.length
  const params = `rate=${rate},alone=0`
  for (const [share, unit] of [[0.5, 'us-p50'], [0.99, 'us-p99'], [1, 'us-max']]) {
    if (overdue > 0) unavailable(params, unit, `${overdue} of ${total} never ran`)
    else print(params, lags[Math.max(0, Math.ceil(total * share) - 1)], unit)
  }
  print(params, lags.filter((lag) => lag < 0).length, 'early')
  print(params, overdue, 'overdue')
}

async function idle () {
  const boss = await start(() => {})
  for (let i = 0; i < 1000; i++) await send(boss, 3_600_000)
  const server = new URL(url)
  const database = server.pathname.slice(1)
  server.pathname = '/postgres'
  const client = new Client(server.toString())
  await client.connect()
  const question = 'select xact_commit + xact_rollback as n from pg_stat_database where datname = $1'
  const count = async () => Number((await client.query(question, [database])).rows[0].n)
  await sleep(12_000)
  const [begin, before] = [Date.now(), await count()]
  await sleep(number('ms', 60_000))
  print('lease=15s', (await count() - before) * 60_000 / (Date.now() - begin), 'transactions/min')
}

const cases = { P1: inserts, P2: lives, P4: lag, P6: idle }
if (!cases[workload]) throw new Error(`no case ${workload}; there are ${Object.keys(cases)}`)
cases[workload]().then(() => process.exit(0), (error) => { console.error(error.message); process.exit(1) })
