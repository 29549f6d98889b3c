import { join } from 'node:path';
import { cacheFor, installOnce, npmInstall } from '../../support/agents/install-once.js';
import { Collector } from '../../support/service/collector.js';
import { startService } from '../../support/service/service.js';

/** Last version of the package that contains code generated from the protocol buffers of OTLP. */
const version = '0.203.0';
const ids = ['traceId', 'spanId', 'parentSpanId'];

interface Message {
  readonly [field: string]: unknown;
}

/** Message type of protocol buffers, as in the generated code. */
interface MessageType {
  fromObject(fields: object): object;
  encode(message: object): { finish(): Uint8Array };
  decode(bytes: Uint8Array): object;
  toObject(message: object, options: object): Message;
}

async function officialType(): Promise<MessageType> {
  const name = '@opentelemetry/otlp-transformer';
  const folder = await installOnce(cacheFor('monitoring'), `otlp-${version}`, (building) =>
    npmInstall(building, `${name}@${version}`),
  );
  const { opentelemetry } = require(join(folder, 'node_modules', name, 'build', 'src', 'generated', 'root.js'));
  return opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;
}

/** Decodes the IDs to bytes: OTLP writes them in hex, not in base64. */
function withBytes(body: string): object {
  return JSON.parse(body, (key, value) => (ids.includes(key) ? Buffer.from(value, 'hex') : value));
}

/** Whether the value is an empty list. In protocol buffers, this equals a missing list. */
function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

it('The spans of a service match the official types of OTLP in every field', async () => {
  const type = await officialType();
  await using collector = await Collector.start();
  await using service = await startService({ env: { ...collector.env, MODEL_API_LIVE_SESSIONS: '4' } });
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  await service.post('/ask', { prompt: 'hello' }, { traceparent, tracestate: 'a=1' });
  await service.post('/ask', { prompt: '' });
  await service.post('/chat', { message: 'hello', stream: true });
  await service.stop();
  expect(collector.spans.length).toBeGreaterThan(8);
  for (const { body } of collector.requests) {
    const bytes = type.encode(type.fromObject(withBytes(body))).finish();
    const hex = (value: Uint8Array) => Buffer.from(value).toString('hex');
    const read = type.toObject(type.decode(bytes), { longs: String, bytes: Array }) as object;
    const text = JSON.stringify(read, (key, value) => (ids.includes(key) ? hex(Uint8Array.from(value)) : value));
    expect(JSON.parse(text)).toEqual(JSON.parse(body, (_, value) => (isEmptyList(value) ? undefined : value)));
  }
});
