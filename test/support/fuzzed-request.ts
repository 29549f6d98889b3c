import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { type OpenApi, openApiPath } from './contract.js';
import {
  brokenBodies,
  contentTypes,
  encodings,
  hosts,
  ids,
  methods,
  notUtf8,
  odd,
  oddHeaders,
  paths,
  times,
  words,
} from './odd-values.js';

/** A request as bytes, and what is needed to hold its answer against the document. */
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

const document = parse(readFileSync(openApiPath, 'utf8')) as OpenApi;

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

/** Makes requests from the OpenAPI document, valid ones and nearly valid ones, the same ones for the same random numbers. */
export class RequestMaker {
  readonly #random: () => number;
  readonly #key: string;
  readonly #bodyLimitBytes: number;
  /** Ids of conversations that have been begun. */
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

  /** A value of this schema; now and then a field is left out, of another type, or one too many. */
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

/** Without these hardly any request is answered with more than 400. */
function isMain(field: string): boolean {
  return field === 'prompt' || field === 'message';
}

function resolved(reference: string): JsonSchema {
  const [, , kind = '', name = ''] = reference.split('/');
  return document.components[kind]?.[name] as JsonSchema;
}
