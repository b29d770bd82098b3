// The official TypeScript clients under load: the command line and the report of `harness`, which see.
//
// `--sdk client` is `@modelcontextprotocol/client`, `--sdk sdk` the first generation of it, `@modelcontextprotocol/sdk`. Both with
// their defaults, but for the size of a message on stdio, which by default is smaller than what is sent here.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

const NO_CAP_BYTES = 2 ** 30;
/** Just-in-time compilation takes longer than the tenth of the time for which `harness` warms up. */
const WARM_UP_SECONDS = 1;
/** A loop that saw so many errors gives up. */
const MOST_ERRORS = 100;

const text = (fallback) => ({ type: 'string', default: fallback });
const { values } = parseArgs({
  options: {
    sdk: text('client'),
    server: text(''),
    transport: text('stdio'),
    reply: text('json'),
    op: text('blob'),
    size: text('100'),
    'in-flight': text('1'),
    seconds: text('1'),
    calls: { type: 'string' },
  },
});
const size = Number(values.size);
const tools = values.op === 'list' ? values.size : '1';

async function library() {
  if (values.sdk === 'sdk') {
    return {
      ...(await import('@modelcontextprotocol/sdk/client/index.js')),
      ...(await import('@modelcontextprotocol/sdk/client/stdio.js')),
      ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')),
    };
  }
  return { ...(await import('@modelcontextprotocol/client')), ...(await import('@modelcontextprotocol/client/stdio')) };
}

async function startHttpServer() {
  const words = ['http', '--reply', values.reply, '--tools', tools];
  const child = spawn(values.server, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [url] = await once(createInterface({ input: child.stdout }), 'line');
  return { child, url: new URL(url) };
}

/** How much came back: characters of text, or tools, or 1 for a structured result. */
async function callOnce(client, payload) {
  if (values.op === 'list') {
    // Each list is to be a round trip; `listTools` of the newer client also compiles the schemas of what it read.
    const list = values.sdk === 'sdk' ? client.listTools() : client.request({ method: 'tools/list', params: {} });
    return (await list).tools.length;
  }
  const toolArguments = values.op === 'echo' ? { text: payload } : { size };
  const result = await client.callTool({ name: values.op, arguments: toolArguments });
  return values.op === 'struct' ? Number(result.structuredContent !== undefined) : result.content[0].text.length;
}

async function load(client, payload, seconds, calls) {
  const expected = values.op === 'struct' ? 1 : size;
  const measured = { latencies: [], errors: 0, firstError: null };
  const fail = (why) => {
    measured.errors += 1;
    measured.firstError ??= why;
  };
  let left = calls ?? Infinity;
  const usedBefore = process.cpuUsage();
  const start = performance.now();
  const deadline = calls === undefined ? start + seconds * 1000 : Infinity;
  const oneAtATime = async () => {
    while (measured.errors < MOST_ERRORS && performance.now() < deadline && left-- > 0) {
      const began = performance.now();
      try {
        const count = await callOnce(client, payload);
        if (count === expected) measured.latencies.push((performance.now() - began) * 1000);
        else fail(`${count} came back instead of ${expected}`);
      } catch (error) {
        fail(String(error));
      }
    }
  };
  await Promise.all(Array.from({ length: Number(values['in-flight']) }, oneAtATime));
  measured.wallSeconds = (performance.now() - start) / 1000;
  const used = process.cpuUsage(usedBefore);
  measured.cpuMicros = used.user + used.system;
  measured.latencies.sort((one, other) => one - other);
  return measured;
}

/** A line of the status of this process, in MB; 0 where the system has no such file. */
function statusMb(key) {
  try {
    const [, kib] = readFileSync('/proc/self/status', 'utf8').match(new RegExp(`^${key}:\\s+(\\d+)`, 'm'));
    return (Number(kib) * 1024) / 1e6;
  } catch {
    return 0;
  }
}

const { Client, StdioClientTransport, StreamableHTTPClientTransport } = await library();
const http = values.transport === 'http' ? await startHttpServer() : undefined;
const transport = http
  ? new StreamableHTTPClientTransport(http.url)
  : new StdioClientTransport({ command: values.server, args: ['stdio', '--tools', tools], maxBufferSize: NO_CAP_BYTES });
const client = new Client({ name: 'bench', version: '0.1.0' }, { capabilities: {} });
await client.connect(transport);

const line = 'The quick brown fox jumps over the lazy dog; pack my box with five jugs.\n';
const payload = values.op === 'echo' ? line.repeat(Math.ceil(size / line.length)).slice(0, size) : '';
const residentBefore = statusMb('VmRSS');
const calls = values.calls === undefined ? undefined : Number(values.calls);
if (calls === undefined) await load(client, payload, WARM_UP_SECONDS);
const measured = await load(client, payload, Number(values.seconds), calls);
const { latencies } = measured;
const quantile = (share) => Math.round(latencies[Math.floor((latencies.length - 1) * share)]);
console.log(
  JSON.stringify({
    client: `typescript ${values.sdk}`,
    calls: latencies.length,
    errors: measured.errors,
    first_error: measured.firstError,
    calls_per_s: latencies.length / measured.wallSeconds,
    cpu_us_per_call: measured.cpuMicros / latencies.length,
    p50_us: quantile(0.5),
    p99_us: quantile(0.99),
    resident_before_mb: residentBefore,
    peak_resident_mb: statusMb('VmHWM'),
    connections: null,
  }),
);
await client.close();
http?.child.kill();
process.exit(0);
