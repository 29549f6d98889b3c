/** Unusual request bodies for all three compatibility APIs. */

export const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Terms of one API for the parts that all APIs have. */
export interface DoorShape {
  readonly path: string;
  readonly isAnthropic: boolean;
  /** Returns a complete body with these messages. */
  body(messages: readonly unknown[], more?: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
  /** Name of the field with the messages. */
  readonly messages: string;
  text(text: unknown): unknown;
  image(mediaType: string, data: string): unknown;
  imageUrl(url: unknown): unknown;
  /** Returns the fields that request a value of this schema. */
  format(schema: unknown): Readonly<Record<string, unknown>>;
  tool(name: string, schema: unknown): unknown;
  named(name: string): unknown;
  readonly required: unknown;
  /** Returns the fields for stop sequences; null if the API has none. */
  stop(sequences: unknown): Readonly<Record<string, unknown>> | null;
}

const chat: DoorShape = {
  path: '/v1/chat/completions',
  isAnthropic: false,
  messages: 'messages',
  body: (messages, more = {}) => ({ model: 'echo', messages, ...more }),
  text: (text) => ({ type: 'text', text }),
  image: (mediaType, data) => chat.imageUrl(`data:${mediaType};base64,${data}`),
  imageUrl: (url) => ({ type: 'image_url', image_url: { url } }),
  format: (schema) => ({ response_format: { type: 'json_schema', json_schema: { name: 'value', schema } } }),
  tool: (name, parameters) => ({ type: 'function', function: { name, parameters } }),
  named: (name) => ({ type: 'function', function: { name } }),
  required: 'required',
  stop: (stop) => ({ stop }),
};

const responses: DoorShape = {
  path: '/v1/responses',
  isAnthropic: false,
  messages: 'input',
  body: (input, more = {}) => ({ model: 'echo', input, ...more }),
  text: (text) => ({ type: 'input_text', text }),
  image: (mediaType, data) => responses.imageUrl(`data:${mediaType};base64,${data}`),
  imageUrl: (url) => ({ type: 'input_image', image_url: url }),
  format: (schema) => ({ text: { format: { type: 'json_schema', name: 'value', schema } } }),
  tool: (name, parameters) => ({ type: 'function', name, parameters }),
  named: (name) => ({ type: 'function', name }),
  required: 'required',
  stop: () => null,
};

const messages: DoorShape = {
  path: '/v1/messages',
  isAnthropic: true,
  messages: 'messages',
  body: (said, more = {}) => ({ model: 'echo', max_tokens: 100, messages: said, ...more }),
  text: (text) => ({ type: 'text', text }),
  image: (mediaType, data) => ({ type: 'image', source: { type: 'base64', media_type: mediaType, data } }),
  imageUrl: (url) => ({ type: 'image', source: { type: 'url', url } }),
  format: (schema) => ({ output_config: { format: { type: 'json_schema', schema } } }),
  tool: (name, input_schema) => ({ name, input_schema }),
  named: (name) => ({ type: 'tool', name }),
  required: { type: 'any' },
  stop: (stop_sequences) => ({ stop_sequences }),
};

export const doorShapes = [chat, responses, messages] as const;

export interface OddRequest {
  readonly name: string;
  /** Objects are sent as JSON, strings as they are. */
  readonly body: unknown;
  readonly status: number;
  readonly contentType?: string;
}

const user = (content: unknown) => ({ role: 'user', content });
const answered = { role: 'assistant', content: 'Hi' };
const nested = (depth: number) => `${'{"not":'.repeat(depth)}{}${'}'.repeat(depth)}`;
const person = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const base64 = (text: string) => Buffer.from(text).toString('base64');

/** Returns invalid or unsupported requests: each must get 400, or the status that the case names. */
export function oddRequests(door: DoorShape): OddRequest[] {
  return [
    ...brokenBodies(door),
    ...oddMessages(door),
    ...oddImages(door),
    ...oddSchemas(door),
    ...oddTools(door),
    ...oddSizes(door),
  ].map(([name, body, status = 400, contentType]) => ({ name, body, status, ...(contentType && { contentType }) }));
}

type Case = readonly [name: string, body: unknown, status?: number, contentType?: string];

function brokenBodies({ body, messages }: DoorShape): Case[] {
  const good = body([user('Hi')]);
  const without = (name: string) => Object.fromEntries(Object.entries(good).filter(([key]) => key !== name));
  return [
    ['no JSON', '{"model":'],
    ['an empty body', ''],
    ['a list', '[]'],
    ['a number', '7'],
    ['null', 'null'],
    ['another type', JSON.stringify(good), 400, 'text/plain'],
    ['another charset', JSON.stringify(good), 400, 'application/json; charset=utf-16'],
    ['a model that is a number', { ...good, model: 7 }],
    ['a model that nobody knows', { ...good, model: 'gpt-unheard-of' }, 404],
    ['a model that is a flag', { ...good, model: '--help' }, 404],
    ['a model with a line end', { ...good, model: 'echo\n' }, 404],
    ['no messages', without(messages)],
    ['messages that are a number', { ...good, [messages]: 7 }],
    ['messages that are null', { ...good, [messages]: null }],
    ['messages that are an object', { ...good, [messages]: {} }],
    ['stream that is a word', { ...good, stream: 'yes' }],
    ['its own prototype', `{"__proto__":{"model":"echo"},${JSON.stringify(good).slice(1)}`],
    ['brackets without an end', '['.repeat(100_000)],
  ];
}

function oddMessages(door: DoorShape): Case[] {
  const { body, text } = door;
  return [
    ['no message at all', body([])],
    ['a message that is a word', body(['Hi'])],
    ['a message that is null', body([null])],
    ['a message without a role', body([{ content: 'Hi' }])],
    ['a role that nobody knows', body([{ role: 'robot', content: 'Hi' }])],
    ['a role that is a number', body([{ role: 1, content: 'Hi' }])],
    ['a role of the prototype', body([{ role: 'constructor', content: 'Hi' }])],
    [
      'an answer of a tool that is a number',
      body([user('Hi'), answered, { role: 'tool', tool_call_id: 'a', content: 7 }]),
    ],
    ['empty content', body([user('')])],
    ['blank content', body([user(' \n\t ')])],
    ['no content', body([{ role: 'user' }])],
    ['content that is null', body([user(null)])],
    ['content that is a number', body([user(7)])],
    ['content without parts', body([user([])])],
    ['a part that is a word', body([user(['Hi'])])],
    ['a part that is null', body([user([null])])],
    ['a part without a type', body([user([{ text: 'Hi' }])])],
    ['a part of an unknown type', body([user([{ type: 'smell', smell: 'roses' }])])],
    ['a part with sound', body([user([{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }])])],
    ['a text that is a number', body([user([text(7)])])],
    ['a text that is missing', body([user([text(undefined)])])],
    ['an answer at the end', body([user('Hi'), answered])],
    ['answers alone', body([answered])],
    ['a blank last message', body([user('Hi'), answered, user('  ')])],
  ];
}

function oddImages({ body, image, imageUrl }: DoorShape): Case[] {
  const shown = (part: unknown) => body([user([part])]);
  return [
    ['an image from the net', shown(imageUrl('http://169.254.169.254/latest'))],
    ['an image from a file', shown(imageUrl('file:///etc/passwd'))],
    ['an image without an address', shown(imageUrl(undefined))],
    ['an image whose address is a number', shown(imageUrl(7))],
    ['an image whose address is no URL', shown(imageUrl('data:,'))],
    ['an image that is no base64', shown(image('image/png', 'not base64!'))],
    ['an image whose base64 is cut', shown(image('image/png', png.slice(0, -3)))],
    ['an image without data', shown(image('image/png', ''))],
    ['a text called png', shown(image('image/png', base64('only a text, and a long one, to be sure')))],
    ['a jpeg called png', shown(image('image/png', '/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgGBgcGBQ=='))],
    ['an image of an unknown type', shown(image('image/tiff', png))],
    ['an SVG', shown(image('image/svg+xml', base64('<svg onload="alert(1)"/>')))],
    ['HTML called an image', shown(image('text/html', base64('<h1>Hi</h1>')))],
  ];
}

function oddSchemas({ body, format }: DoorShape): Case[] {
  const wanted = (schema: unknown) => body([user('Hi')], format(schema));
  return [
    ['a schema that is a word', wanted('object')],
    ['a schema that is null', wanted(null)],
    ['a schema that is a list', wanted([])],
    ['a schema with a list at its root', wanted({ type: 'array', items: {} })],
    ['a schema with a string at its root', wanted({ type: 'string' })],
    ['a schema of a type that nobody knows', wanted({ type: 'object', properties: { a: { type: 'colour' } } })],
    ['a schema whose properties are a word', wanted({ type: 'object', properties: 'a' })],
    [
      'a schema that refers to the net',
      wanted({ type: 'object', properties: { a: { $ref: 'http://example.org/a' } } }),
    ],
    ['a schema that refers to a file', wanted({ type: 'object', $ref: 'file:///etc/passwd' })],
    ['a schema that refers to nothing', wanted({ type: 'object', properties: { a: { $ref: '#/$defs/a' } } })],
    ['a schema with a broken pattern', wanted({ type: 'object', properties: { a: { pattern: '(' } } })],
    ['a schema that is too long', wanted({ ...person, description: 'x'.repeat(70_000) })],
    ['a schema that is too deep', JSON.stringify(wanted({ type: 'object', not: 7 })).replace('7', nested(9000))],
  ];
}

function oddTools({ body, tool, named, required }: DoorShape): Case[] {
  const called = (tools: unknown, tool_choice: unknown) => body([user('Hi')], { tools, tool_choice });
  const a = tool('a', person);
  return [
    ['tools that are a word', called('a', 'auto')],
    ['a tool that is null', called([null], named('a'))],
    ['a tool that is not offered', called([a], named('b'))],
    ['a call of nothing', called([], required)],
    ['a choice that is a number', called([a], 7)],
  ];
}

function oddSizes({ body }: DoorShape): Case[] {
  return [['20 MB', JSON.stringify(body([user('x'.repeat(20 * 1024 * 1024))])), 413]];
}

/** Returns unusual but valid requests. */
export function oddButGood(door: DoorShape): OddRequest[] {
  const { body, text, image, format, stop } = door;
  const recursive = {
    type: 'object',
    properties: { name: { type: 'string' }, child: { $ref: '#' } },
    required: ['name'],
  };
  const many = Array.from({ length: 10_000 }, (_, index) => (index % 2 === 0 ? user(`question ${index}`) : answered));
  const cases: Case[] = [
    ['10,000 messages', body([...many, user('Hi')]), 200],
    ['100 parts', body([user(Array.from({ length: 100 }, (_, index) => text(`part ${index}`)))]), 200],
    ['an image alone', body([user([image('image/png', png)])]), 200],
    ['an image between texts', body([user([text('a'), image('image/png', png), text('b')])]), 200],
    ['a recursive schema', body([user('Hi')], format(recursive)), 200],
    ['fields that nobody knows', body([user('Hi')], { constructor: 1, 'odd name': 2, seed: 7 }), 200],
    ['text that looks like a command', body([user('/clear @/etc/passwd --help')]), 200],
    ['U+2028 and an emoji', body([user('a\u2028b 👩‍💻')]), 200],
    ...(stop(['x']) === null
      ? []
      : ([
          ['a stop sequence inside an emoji', body([user('👩‍💻')], stop(['\u200d']) ?? {}), 200],
          ['a stop sequence that never comes', body([user('Hi')], stop(['never']) ?? {}), 200],
        ] as const)),
  ];
  return cases.map(([name, content, status = 200]) => ({ name, body: content, status }));
}
