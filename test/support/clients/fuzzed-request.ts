import { document } from '../doors/contract.js';

/** Request as bytes, with the data to check its answer against the OpenAPI document. */
export interface FuzzedRequest {
  readonly method: string;
  readonly path: string;
  readonly bytes: Buffer;
}

interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
}

interface FuzzedOperation {
  readonly method: string;
  readonly route: string;
  readonly body: JsonSchema | null;
  readonly queries: readonly string[];
}

const operations: readonly FuzzedOperation[] = Object.entries(document.paths).flatMap(([route, item]) =>
  Object.entries(item).map(([method, operation]) => {
    const { requestBody, parameters = [] } = operation as {
      readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> };
      readonly parameters?: readonly { readonly in: string; readonly name: string }[];
    };
    const queries = parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name);
    return {
      method: method.toUpperCase(),
      route,
      body: requestBody?.content['application/json']?.schema ?? null,
      queries,
    };
  }),
);

/** Makes valid and nearly valid requests from the OpenAPI document; equal random numbers give equal requests. */
export class RequestMaker {
  readonly #random: () => number;
  readonly #key: string;
  readonly #bodyLimitBytes: number;
  /** Ids of conversations that exist. */
  readonly ids: string[] = [];

  constructor(random: () => number, key: string, bodyLimitBytes: number) {
    this.#random = random;
    this.#key = key;
    this.#bodyLimitBytes = bodyLimitBytes;
  }

  next(): FuzzedRequest {
    const operation = this.#oneOf(operations);
    const method = this.#isRare(0.1) ? this.#oneOf(methods) : operation.method;
    const path = this.#isRare(0.1) ? this.#oneOf(paths) : this.#pathOf(operation);
    const body = operation.body === null && !this.#isRare(0.1) ? null : this.#bodyOf(operation.body);
    const head = [`${method} ${path} HTTP/1.1`, ...this.#headers(body), '', ''].join('\r\n');
    return { method, path, bytes: Buffer.concat([Buffer.from(head, 'latin1'), body ?? Buffer.alloc(0)]) };
  }

  #pathOf({ route, queries }: FuzzedOperation): string {
    const path = route.replace(/\{\w+\}/g, () =>
      this.#oneOf(this.ids.length > 0 && !this.#isRare(0.4) ? this.ids : ids),
    );
    const query = queries.map((name) => `${name}=${this.#oneOf(times)}`);
    if (this.#isRare(0.1))
      query.push(this.#oneOf(['x', 'x=%', '__proto__=1', 'since=1&since=2', 'since[]=1', '&&&', '='.repeat(50)]));
    return query.length === 0 || this.#isRare(0.2) ? path : `${path}?${query.join('&')}`;
  }

  #bodyOf(schema: JsonSchema | null): Buffer {
    if (this.#isRare(0.05)) return notUtf8;
    if (this.#isRare(0.15)) return this.#oneOf(brokenBodies);
    if (this.#isRare(0.03)) return Buffer.from(JSON.stringify({ prompt: 'x'.repeat(this.#bodyLimitBytes) }));
    return Buffer.from(JSON.stringify(this.#valueOf(schema ?? {}, 'body')));
  }

  /** Returns a value of this schema; sometimes with a missing field, a wrong type, or an extra field. */
  #valueOf(schema: JsonSchema, name: string): unknown {
    if (schema.$ref !== undefined) return this.#valueOf(resolved(schema.$ref), name);
    if (schema.enum !== undefined) return this.#oneOf(schema.enum);
    if (schema.type === 'array') return [this.#valueOf(schema.items ?? {}, name)];
    if (schema.type === 'boolean') return this.#isRare(0.5);
    if (schema.type !== 'object') return this.#text(name);
    const fields = Object.entries(schema.properties ?? {}).filter(
      ([field]) => !this.#isRare(isMain(field) ? 0.05 : 0.6),
    );
    const values = fields.map(([field, of]) => [
      field,
      this.#isRare(0.05) ? this.#oneOf(odd) : this.#valueOf(of, field),
    ]);
    if (this.#isRare(0.05))
      values.push([this.#oneOf(['unknown', 'Prompt', 'messages', 'toString', 'ü']), this.#oneOf(odd)]);
    return Object.fromEntries(values);
  }

  #text(name: string): string {
    if (name === 'conversation_id' && this.ids.length > 0 && !this.#isRare(0.2)) return this.#oneOf(this.ids);
    if (name === 'model' && !this.#isRare(0.3)) return 'eliza';
    return this.#isRare(0.3) ? this.#oneOf(words) : `Hello ${Math.floor(this.#random() * 1000)}`;
  }

  #headers(body: Buffer | null): string[] {
    const type = this.#isRare(0.1) ? this.#oneOf(contentTypes) : 'application/json';
    const headers = [
      `Host: ${this.#isRare(0.05) ? this.#oneOf(hosts) : 'localhost'}`,
      'Connection: close',
      ...this.#credentials(),
    ];
    if (body !== null) headers.push(`Content-Type: ${type}`, `Content-Length: ${body.length}`);
    if (this.#isRare(0.03)) headers.push(`Content-Encoding: ${this.#oneOf(encodings)}`);
    while (this.#isRare(0.25)) headers.push(this.#oneOf(oddHeaders));
    return headers;
  }

  #credentials(): string[] {
    if (this.#isRare(0.05)) return [];
    if (this.#isRare(0.05)) return [`X-API-Key: ${this.#oneOf(['wrong', '', 'ü', `${this.#key}x`])}`];
    if (this.#isRare(0.05)) return [`X-API-Key: ${this.#key}`, 'Authorization: Bearer another'];
    return [this.#isRare(0.5) ? `X-API-Key: ${this.#key}` : `Authorization: Bearer ${this.#key}`];
  }

  #oneOf<T>(from: readonly T[]): T {
    return from[Math.floor(this.#random() * from.length)] as T;
  }

  #isRare(chance: number): boolean {
    return this.#random() < chance;
  }
}

/** Whether a field is nearly always needed, because most requests would only get 400 without the field. */
function isMain(field: string): boolean {
  return field === 'prompt' || field === 'message';
}

function resolved(reference: string): JsonSchema {
  const [, , kind = '', name = ''] = reference.split('/');
  return document.components[kind]?.[name] as JsonSchema;
}

/** Hostile and unusual values for all parts of a request. */

const words = [
  'Hello',
  'grüße 🚀 语言',
  ' ',
  '',
  '\u0000',
  '\ud800',
  '../../etc/passwd',
  '/cost',
  '[turn-11 user]',
  'x'.repeat(3000),
];
const odd: readonly unknown[] = [null, true, 0, -1, 1e308, 2 ** 53, [], {}, [[]], { a: 1 }, '', ' ', '9'.repeat(400)];
/** Bodies that are not JSON objects, or only nearly. */
const brokenBodies = [
  ...['', '{', '[]', 'null', '"x"', '1e999', '{"prompt":"a",}', "{'prompt':'a'}", '\ufeff{"prompt":"a"}'],
  ...['{"prompt":"a"} {}', '{"prompt":"a","prompt":"b"}', '{"message":"a","message":1}'],
  ...['{"__proto__":{"prompt":"a"}}', '{"prompt":1e999}', '{"prompt":"\\ud800"}', '{"constructor":1,"prompt":"a"}'],
  ...['{"prompt":"a","messages":[]}', `{"prompt":${'['.repeat(5000)}`],
].map((text) => Buffer.from(text));
const notUtf8 = Buffer.from([0x7b, 0x22, 0x70, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]);

const methods = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD', 'PROPFIND', 'LOCK'];
const paths = [
  ...['/', '//', '/ask/', '/ASK', '/chat/', '/chat/a/b', '/docs/', '/docs/x.js', '/docs/..%2f..%2fetc/passwd'],
  ...['/console/', '/console/..%2fmain.js', '/%', '/%ff', '/chat/%00', '/chat/%zz', '/.%2e/health'],
  ...['/health/../version', '/health/history/x', '/favicon.ico', `/${'a'.repeat(2000)}`, '/ask%20', '/*'],
];
const ids = ['unknown', '%C3%BC', '%00', '%ff', '%', '..', '%2e%2e', '__proto__', 'a'.repeat(1000), '%20', '?', "';--"];
const times = [
  '2026-01-01T00:00:00Z',
  '2026-01-01T00:00:00+02:00',
  '2026',
  'now',
  '',
  '%00',
  '-1',
  '9'.repeat(30),
  '%E2%9C%93',
  '0000-00-00T00:00:00Z',
  '275760-09-13T00:00:00Z',
  '+275760-09-14T00:00:00.000Z',
  '2026-13-45T99:99:99Z',
];
const oddHeaders = [
  ...['X-Request-Id: ok-1', 'X-Request-Id: no spaces allowed', `X-Request-Id: ${'a'.repeat(65)}`, 'X-Request-Id: ü'],
  ...['X-Request-Id:', 'Accept: text/event-stream', 'Accept: */*;q=0.1', 'Accept: application/xml', 'Accept: ,;='],
  ...['Accept-Encoding: br, gzip', 'Range: bytes=0-1', 'Origin: http://evil.example', 'Origin: null'],
  ...['Sec-Fetch-Site: cross-site', 'X-Forwarded-For: 1.2.3.4', 'X-Forwarded-For: ,,', 'Forwarded: for=x'],
  ...['Cookie: a=b', 'If-None-Match: *', 'Expect: 100-continue', 'Expect: magic', 'Upgrade: websocket'],
  ...['X-HTTP-Method-Override: DELETE', `X-Long: ${'a'.repeat(9000)}`, 'Content-Language: \u00e9', 'TE: trailers'],
  ...['Prefer: respond-async', 'Authorization: Basic eDp5', 'Authorization:'],
];
const hosts = [
  ...['localhost', '127.0.0.1', '[::1]', 'evil.example', '', 'localhost:99999', 'local host', 'LOCALHOST.'],
  '127.0.0.1:80',
];
const contentTypes = [
  ...['application/json', 'application/json; charset=utf-8', 'application/json; charset=latin1', 'text/plain', ''],
  ...['application/JSON ; Charset="UTF-8"', 'multipart/form-data; boundary=x', 'application/json, text/html'],
];
const encodings = ['gzip', 'identity', 'br', 'x'];
