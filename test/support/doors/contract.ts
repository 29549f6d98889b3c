interface Content {
  readonly [mediaType: string]: { readonly schema: object };
}

interface Documented {
  readonly description: string;
  /** Body of the response; absent if only the status is sent. */
  readonly content?: Content;
}

interface Operation {
  readonly responses: { readonly [status: string]: Documented };
}

export interface OpenApi {
  readonly openapi: string;
  readonly paths: { readonly [route: string]: { readonly [method: string]: Operation } };
  readonly components: { readonly [kind: string]: { readonly [name: string]: object } };
}

/** Request and answer as sent; header names in lower case. */
export interface Exchange {
  readonly method: string;
  /** Path with the query, if any. */
  readonly path: string;
  readonly status: number;
  readonly header: (name: string) => string | null | undefined;
  readonly text: string;
}

type OpenApiModule = typeof import('../documents/openapi.js');

declare global {
  /** Jest's environment provides it: reading the document and compiling its schemas takes half a second. */
  var openApiOfProcess: OpenApiModule | undefined;
}

/** Benchmarks run without Jest. */
const openApi = globalThis.openApiOfProcess ?? (require('../documents/openapi.js') as OpenApiModule);

/** The committed OpenAPI document. */
export const document = JSON.parse(openApi.openApiJson()) as OpenApi;

/** Answers that no operation documents: broken HTTP, unknown paths or methods, WebSockets, preflights. */
const outside =
  /^(204 |400 validation_error|403 forbidden|404 not_found|4(05|26) method_not_allowed|431 validation_error)/;
const outsideStatus = /^(204|400|403|404|405|426|431) /;
const jsonType = 'application/json';

/** Checks answers against the committed OpenAPI document, and records which documented answers have occurred. */
export class Contract {
  readonly #seen = new Set<string>();

  /** Throws at the first deviation from the document. */
  check(sent: Exchange): void {
    const exchange = { ...sent, path: doorOf(sent) };
    const route = routeOf(exchange.path);
    const operation = route === null ? undefined : document.paths[route]?.[methodOf(exchange)];
    if (operation === undefined) return checkOutside(exchange);
    const status = operation.responses[exchange.status] === undefined ? 'default' : String(exchange.status);
    const documented = operation.responses[status];
    if (documented === undefined) throw fault(exchange, 'has an undocumented status');
    checkContent(exchange, documented, ['paths', route as string, methodOf(exchange), 'responses', status]);
    checkCode(exchange, documented);
    this.#seen.add(keyOf(methodOf(exchange), route as string, String(exchange.status), codeOf(exchange)));
  }

  /**
   * Sends a request, and resolves when the headers have arrived. The answer is checked when its body has been read: a
   * deviation rejects the reader.
   */
  async fetch(url: string, path: string, request: RequestInit = {}): Promise<Response> {
    const response = await fetch(url + path, request);
    const { status, headers, body } = response;
    const sent = { method: request.method ?? 'GET', path, status, header: (name: string) => headers.get(name) };
    if (body === null) {
      this.check({ ...sent, text: '' });
      return response;
    }
    const decoder = new TextDecoder();
    let text = '';
    const checked = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        text += decoder.decode(chunk, { stream: true });
        controller.enqueue(chunk);
      },
      flush: () => this.check({ ...sent, text: text + decoder.decode() }),
    });
    return new Response(body.pipeThrough(checked), response);
  }

  /**
   * Documented answers (method, route, status, error code) that have not occurred, except `default` and the
   * compatibility APIs.
   */
  get unseen(): string[] {
    return documentedAnswers().filter((answer) => !this.#seen.has(answer) && !/ \/((v1|api)\/|mcp )/.test(answer));
  }
}

/** Returns all methods, routes, statuses and error codes of the document. */
export function documentedAnswers(): string[] {
  return Object.entries(document.paths).flatMap(([route, operations]) =>
    Object.entries(operations).flatMap(([method, { responses }]) =>
      Object.entries(responses)
        .filter(([status]) => status !== 'default')
        .flatMap(([status, documented]) => codesOf(documented).map((code) => keyOf(method, route, status, code))),
    ),
  );
}

function keyOf(method: string, route: string, status: string, code: string | null): string {
  return [method.toUpperCase(), route, status, ...(code === null ? [] : [code])].join(' ');
}

/** Returns the error codes from the description; null if the body is no error. */
function codesOf({ description, content }: Documented): (string | null)[] {
  if (content === undefined || !JSON.stringify(content).includes('schemas/Error"')) return [null];
  return [...description.matchAll(/`(\w+)`/g)].map(([, code]) => code ?? null);
}

const doors =
  /^(chat\/completions|responses|messages|models\/.|embeddings|completions|moderations|batches|files|audio)/;

/**
 * Maps a path to its documented form: /v1 and /api also exist below the base URLs that some clients need, and MCP with
 * a slash.
 */
function doorOf({ path, header }: Exchange): string {
  if (path === '/mcp/') return '/mcp';
  const [, prefix = '', below = ''] = /^\/+((?:v1\/+)*)(.*?)\/*(?=$|\?)/.exec(path) ?? [];
  const [, ofOllama] = /^\/+(?:v1\/+)?(?:api\/+)+([^?]*?)\/*$/.exec(path) ?? [];
  if (ofOllama !== undefined) return `/api/${ofOllama}`;
  const isList = below === 'models' && (!/^\/models(\?|$)/.test(path) || header('request-id') != null);
  return prefix !== '' || doors.test(below) || isList ? `/v1/${below}` : path;
}

function routeOf(path: string): string | null {
  const [plain = ''] = path.split('?');
  // Names of models may contain slashes.
  const pattern = (route: string) =>
    route
      .replace('/models/{id}', '/models/.+')
      .replace(/^\/console$/, '/console/?')
      .replace(/\{\w+\}/g, '[^/]+');
  const fits = (route: string) => new RegExp(`^${pattern(route)}$`).test(plain);
  return Object.keys(document.paths).find(fits) ?? null;
}

/** Returns the documented method: HEAD is answered like GET. */
function methodOf({ method }: Exchange): string {
  return method === 'HEAD' ? 'get' : method.toLowerCase();
}

function checkOutside(exchange: Exchange): void {
  const isPage = /^\/(docs|console)\//.test(exchange.path) && exchange.status === 200;
  const leadsToConsole =
    /^\/(console(\/[a-z]+\/?)?)?(\?|$)/.test(exchange.path) && [200, 302].includes(exchange.status);
  if (isPage || leadsToConsole) return;
  if (/^\/(v1|mcp|api)([/?]|$)/.test(exchange.path)) return checkOutsideOfDoors(exchange);
  const known = exchange.method === 'HEAD' ? outsideStatus : outside; // answers without a body have no code
  if (!known.test(`${exchange.status} ${codeOf(exchange) ?? ''}`)) throw fault(exchange, 'is outside the document');
  if (exchange.status === 405 && !exchange.header('allow')) throw fault(exchange, 'has no Allow');
  if (exchange.status !== 204) checkSchema(exchange, ['components', 'schemas', 'Error']);
}

/** Checks an answer outside of the document in the form of the client's API. */
function checkOutsideOfDoors(exchange: Exchange): void {
  if (!outsideStatus.test(`${exchange.status} `)) throw fault(exchange, 'is outside the document');
  if (exchange.status === 405 && !exchange.header('allow')) throw fault(exchange, 'has no Allow');
  if (exchange.status === 204 || exchange.method === 'HEAD') return;
  const sdkError = exchange.header('request-id') == null ? 'OpenAiError' : 'AnthropicError';
  const errorName = isOfOllama(exchange) ? 'OllamaError' : sdkError;
  const name = exchange.path.startsWith('/mcp') ? 'RpcError' : errorName;
  checkSchema(exchange, ['components', 'schemas', name]);
}

function checkContent(exchange: Exchange, { content }: Documented, place: readonly string[]): void {
  if (content === undefined && exchange.text === '') return;
  const [type = ''] = (exchange.header('content-type') ?? '').split(';');
  if (content?.[type] === undefined) throw fault(exchange, `has the undocumented content type ${type}`);
  checkSchema(exchange, [...place, 'content', type, 'schema']);
}

function checkSchema(exchange: Exchange, place: readonly string[]): void {
  if (exchange.method === 'HEAD') return;
  const pointer = place.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/');
  const isJson = place.includes(jsonType) || place.at(-1)?.endsWith('Error') === true;
  const errors = openApi.openApiErrors(pointer, exchange.text, isJson);
  if (errors !== null) throw fault(exchange, errors);
}

/** Codes of the reasons that no model CLI has. */
const otherReasons: Readonly<Record<string, string>> = {
  conversation_unknown: 'validation_error',
  previous_response_not_found: 'not_found',
  budget: 'rate_limited',
  storing_is_off: 'forbidden',
};

/** Checks rules that the error schema cannot express: each code has one status, and some have headers. */
function checkCode(exchange: Exchange, documented: Documented): void {
  const code = codeOf(exchange);
  if (exchange.method === 'HEAD' || code === null) return;
  if (!codesOf(documented).includes(code)) throw fault(exchange, 'has an undocumented error code');
  const { request_id, retry_after_seconds, reason, details } = JSON.parse(exchange.text) as Record<string, unknown>;
  const isAgain = exchange.header('idempotency-replayed') === 'true'; // replayed answers have the first one's headers
  if (!isAgain && request_id !== exchange.header('x-request-id')) throw fault(exchange, 'has two request ids');
  if (String(exchange.header('retry-after') ?? null) !== String(retry_after_seconds ?? null))
    throw fault(exchange, 'is unclear on retries');
  const isOfCli = reason !== undefined && !Object.hasOwn(otherReasons, String(reason));
  if ((code === 'cli_error') !== isOfCli || (!isOfCli && reason !== undefined && otherReasons[String(reason)] !== code))
    throw fault(exchange, 'is unclear on its reason');
  // A file that a request refers to may be missing: the details name its field.
  if (code !== 'not_found' && (code === 'validation_error') !== (details !== undefined))
    throw fault(exchange, 'is unclear on its details');
  if (exchange.status === 401 && !exchange.header('www-authenticate')) throw fault(exchange, 'does not ask for a key');
}

/** Whether the path belongs to Ollama's API, whose errors are plain sentences. */
function isOfOllama({ path }: Pick<Exchange, 'path'>): boolean {
  return /^\/api(\/|$)/.test(path);
}

function codeOf({ header, text, path }: Exchange): string | null {
  if (isOfOllama({ path }) || text === '' || !header('content-type')?.startsWith(jsonType)) return null;
  const { error } = JSON.parse(text) as { error?: unknown };
  return typeof error === 'string' ? error : null;
}

function fault({ method, path, status, text }: Exchange, what: string): Error {
  return new Error(`the answer to ${method} ${path.slice(0, 100)} ${what}: ${status} ${text.slice(0, 500)}`);
}
