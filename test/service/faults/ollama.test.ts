import { connect } from 'node:net';
import { startReportingModel } from '../../support/agents/reporting-model.js';
import { askOllama, saidIn } from '../../support/clients/ollama-client.js';
import { jsonPost } from '../../support/clients/raw-http.js';
import { png } from '../../support/doors/door-bodies.js';
import { recovers, untilJobs } from '../../support/jobs/jobs.js';
import { type Service, startService, twoWorkers } from '../../support/service/service.js';

const answerBytes = 10 * 1024 * 1024;
const roomy = { MODEL_API_MAX_OUTPUT_BYTES: String(answerBytes) };
const manners = [
  ['streamed', true],
  ['plain', false],
] as const;

function bodyOf(content: string, stream: boolean) {
  return { model: 'default', messages: [{ role: 'user', content }], stream };
}

/** Sends a request, and reads nothing. */
function askAndIgnore(service: Service, content: string, stream: boolean) {
  const socket = connect(service.port, '127.0.0.1').pause();
  socket.on('error', () => {});
  socket.write(jsonPost('/api/chat', JSON.stringify(bodyOf(content, stream))));
  return socket;
}

describe.each(manners)('A chat of the Ollama API, %s,', (_, stream) => {
  it('by a client that does not read disturbs no other client, and ends when the client disconnects', async () => {
    await using service = await startReportingModel(roomy);
    const sockets = Array.from({ length: 3 }, () => askAndIgnore(service, `big ${answerBytes}`, stream));
    expect((await askOllama(service, '/api/chat', bodyOf('hello', stream))).status).toBe(200);
    for (const socket of sockets) socket.destroy();
    await recovers(service);
  });

  it('is sent completely if the answer is long', async () => {
    await using service = await startReportingModel(roomy);
    const answer = await askOllama(service, '/api/chat', bodyOf(`big ${answerBytes}`, stream));
    expect(saidIn(answer) === 'x'.repeat(answerBytes)).toBe(true);
    expect(answer.pieces.at(-1)).toMatchObject({ done: true, done_reason: 'stop' });
  });

  it('ends when its client disconnects', async () => {
    await using service = await startReportingModel();
    const socket = askAndIgnore(service, 'silent', stream);
    await untilJobs(service, 1, 0);
    socket.destroy();
    await recovers(service);
  });

  it('is cancelled if its worker is killed', async () => {
    await using service = await startReportingModel(twoWorkers);
    const lost = expect(service.post('/api/chat', bodyOf('silent', stream))).rejects.toThrow();
    await untilJobs(service, 1, 0);
    for (const pid of await service.workers()) process.kill(pid, 'SIGKILL');
    await lost;
    await recovers(service);
  });

  it('ends with an error if a drain cuts it off', async () => {
    await using service = await startReportingModel({ MODEL_API_DRAIN_TIMEOUT_SECONDS: '1' });
    const sent = askOllama(service, '/api/chat', bodyOf('silent', stream));
    await untilJobs(service, 1, 0);
    service.process.kill('SIGTERM');
    const { status, pieces } = await sent;
    expect([status, pieces.length]).toEqual([stream ? 200 : 503, 1]);
    expect(pieces).toEqual([{ error: expect.any(String) }]);
    expect(await service.exited).toBe(1);
  });

  it('is refused if the queue is full', async () => {
    await using service = await startReportingModel({ MODEL_API_MAX_CONCURRENT: '1', MODEL_API_MAX_QUEUE: '0' });
    const socket = askAndIgnore(service, 'silent', stream);
    await untilJobs(service, 1, 0);
    const { status, pieces } = await askOllama(service, '/api/chat', bodyOf('hello', stream));
    expect([status, pieces]).toEqual([429, [{ error: expect.any(String) }]]);
    socket.destroy();
    await recovers(service);
  });

  it('is refused if the waiting jobs have 64 MiB of text', async () => {
    await using service = await startReportingModel({ MODEL_API_MAX_CONCURRENT: '1' });
    const sockets = [askAndIgnore(service, 'silent', stream)];
    await untilJobs(service, 1, 0);
    const long = 'x'.repeat(9 * 1024 * 1024);
    for (let waiting = 1; waiting <= 7; waiting++) {
      sockets.push(askAndIgnore(service, long, stream));
      await untilJobs(service, 1, waiting);
    }
    const { status, pieces } = await askOllama(service, '/api/chat', bodyOf(long, stream));
    expect([status, pieces]).toEqual([429, [{ error: expect.any(String) }]]);
    for (const socket of sockets) socket.destroy();
    await recovers(service);
  });
});

describe('The Ollama API that receives invalid requests', () => {
  const user = (content: unknown) => ({ role: 'user', content });
  const hi = [user('Hi')];
  const shown = (...images: unknown[]) => ({ messages: [{ ...user('Hi'), images }] });
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const nothing = { type: 'object', properties: { a: { $ref: '#/$defs/a' } } };
  const nested = (depth: number) => `${'{"not":'.repeat(depth)}{}${'}'.repeat(depth)}`;

  let service: Service;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.stop());

  it.each<[string, object | string, number?]>([
    ['no JSON', '{"model":'],
    ['an empty body', ''],
    ['a list', '[]'],
    ['a number', '7'],
    ['null', 'null'],
    ['brackets without an end', '['.repeat(100_000)],
    ['a model that is a number', { model: 7, messages: hi }],
    ['a model that is a flag', { model: '--help', messages: hi }, 404],
    ['a model that is a tag', { model: ':latest', messages: hi }, 404],
    ['a model of the prototype', { model: 'constructor:latest', messages: hi }, 404],
    ['messages that are an object', { messages: {} }],
    ['a message that is a word', { messages: ['Hi'] }],
    ['a message that is null', { messages: [null] }],
    ['a role that nobody knows', { messages: [{ role: 'robot', content: 'Hi' }] }],
    ['a role of the prototype', { messages: [{ role: 'constructor', content: 'Hi' }] }],
    ['content that is a number', { messages: [user(7)] }],
    ['content in parts', { messages: [user([{ type: 'text', text: 'Hi' }])] }],
    ['blank content', { messages: [user(' \n ')] }],
    ['an answer at the end', { messages: [...hi, { role: 'assistant', content: 'Hi' }] }],
    ['a call that is a word', { messages: [...hi, { role: 'assistant', content: '', tool_calls: ['f'] }, ...hi] }],
    ['images that are a word', { messages: [{ ...user('Hi'), images: png }] }],
    ['an image that is a number', shown(7)],
    ['an image that is no base64', shown('not base64!')],
    ['an image whose base64 is cut', shown(png.slice(0, -3))],
    ['an image from the net', shown('http://169.254.169.254/latest')],
    ['an SVG', shown(base64('<svg onload="alert(1)"/>'))],
    ['HTML called an image', shown(`data:text/html;base64,${base64('<h1>Hi</h1>')}`)],
    ['a format that nobody knows', { messages: hi, format: 'xml' }],
    ['a format that is a list', { messages: hi, format: [] }],
    ['a schema that refers to nothing', { messages: hi, format: nothing }],
    [
      'a schema that is too deep',
      JSON.stringify({ model: 'echo', messages: hi, format: 7 }).replace('7', nested(9000)),
    ],
    ['tools that are a word', { messages: hi, tools: 'a' }],
    ['a tool that is null', { messages: hi, tools: [null] }],
    ['a tool without its function', { messages: hi, tools: [{ type: 'function' }] }],
    ['a tool whose schema is none', { messages: hi, tools: [{ function: { name: 'a', parameters: 7 } }] }],
    ['options that are a word', { messages: hi, options: 'hot' }],
    ['a temperature that is a word', { messages: hi, options: { temperature: 'hot' } }],
    ['17 stop sequences', { messages: hi, options: { stop: Array.from({ length: 17 }, (_, n) => `stop ${n}`) } }],
    ['half a token', { messages: hi, options: { num_predict: 0.5 } }],
    ['thoughts of a number', { messages: hi, think: 7 }],
    ['a stream that is a word', { messages: hi, stream: 'yes' }],
    ['20 MB', { messages: [user('x'.repeat(20 * 1024 * 1024))] }, 413],
  ])('rejects %s in its format', async (_what, body, status = 400) => {
    const sent = typeof body === 'string' ? body : { model: 'echo', ...body };
    const answer = await askOllama(service, '/api/chat', sent);
    expect([answer.status, answer.pieces]).toEqual([status, [{ error: expect.stringMatching(/^.{5,500}$/s) }]]);
  });

  it('leaves no job or process from these requests', async () => {
    await recovers(service);
    expect(service.logs.filter(({ event }) => event === 'internal_error')).toEqual([]);
  });
});
