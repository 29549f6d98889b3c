import { readFile } from 'node:fs/promises';
import { pdfOf } from '../test/support/basics/pdf.js';
import { type Service, startService } from '../test/support/service/service.js';
import { dropLog } from './support/service-log.js';
import { spread } from './support/statistics.js';
import type { Row } from './support/table.js';

const megabytes = 20;
const bodyLimit = '48mb';
const targetMs = 2000;
/** Memory that a process may need at most in addition, MB: the body, the text of its JSON, and the decoded file. */
const targetMb = 250;

/** Returns the body of a question about a PDF, for each API. */
function bodies(data: string): Readonly<Record<string, object>> {
  const source = { type: 'base64', media_type: 'application/pdf', data };
  const file = { filename: 'a.pdf', file_data: `data:application/pdf;base64,${data}` };
  const question = { type: 'text', text: 'What?' };
  return {
    '/ask': { prompt: 'What?', files: [{ name: 'a.pdf', data }] },
    '/v1/messages': {
      max_tokens: 100,
      messages: [{ role: 'user', content: [{ type: 'document', source, title: 'a.pdf' }, question] }],
    },
    '/v1/chat/completions': { messages: [{ role: 'user', content: [{ type: 'file', file }, question] }] },
  };
}

/** Measures a question about a PDF of 20 MB, with the demo model, which gets its text. */
export async function documents(rounds: number): Promise<Row[]> {
  const data = pdfOf({ pages: 50, text: 'Invoice', fillerBytes: megabytes * 1e6 }).toString('base64');
  const rows: Row[] = [];
  for (const [path, body] of Object.entries(bodies(data))) {
    const measured: Measured[] = [];
    for (let round = 0; round < Math.min(rounds, 3); round++) measured.push(await measure(path, body));
    const range = (name: keyof Measured) =>
      spread(
        measured.map((each) => each[name]),
        0,
      );
    rows.push({
      question: `A PDF of ${megabytes} MB, POST ${path}: time, and the most memory beyond the start`,
      target: `≤ ${targetMs / 1000} s; ≤ ${targetMb} MB each`,
      measured: `${range('ms')} ms; worker ${range('workerMb')} MB, primary ${range('primaryMb')} MB`,
      holds: measured.every(
        ({ ms, workerMb, primaryMb }) => ms <= targetMs && Math.max(workerMb, primaryMb) <= targetMb,
      ),
    });
  }
  return rows;
}

interface Measured {
  readonly ms: number;
  readonly workerMb: number;
  readonly primaryMb: number;
}

async function measure(path: string, body: object): Promise<Measured> {
  await using service = await startService({ env: { MODEL_API_WORKERS: '1', MODEL_API_BODY_LIMIT: bodyLimit } });
  dropLog(service);
  await service.post('/ask', { prompt: 'Hello.' });
  const before = await peaks(service);
  const text = JSON.stringify({ model: 'eliza', ...body });
  const start = performance.now();
  const response = await fetch(service.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: text,
  });
  await response.text();
  const ms = performance.now() - start;
  if (!response.ok) throw new Error(`POST ${path}: ${response.status}`);
  const after = await peaks(service);
  return { ms, workerMb: after.worker - before.worker, primaryMb: after.primary - before.primary };
}

/** Returns the largest memory that each process has had, in MB. */
async function peaks(service: Service): Promise<{ worker: number; primary: number }> {
  const [worker = 0] = await service.workers();
  return { worker: await peakOf(worker), primary: await peakOf(service.pid) };
}

async function peakOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}
