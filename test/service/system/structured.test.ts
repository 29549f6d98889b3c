import { fixture, type Service, startWithPrograms } from '../../support/service/service.js';

const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const png = Buffer.from('89504e470d0a1a0a0000000d', 'hex').toString('base64');
const images = [{ media_type: 'image/png', data: png }];

/** Returns the names and the data of a streamed answer's events. */
async function streamed(service: Service, path: string, body: object) {
  const { text } = await service.post(path, { ...body, stream: true });
  const events = text.split('\n\n').filter((event) => event.startsWith('event: '));
  return events.map((event) => {
    const [name = '', data = ''] = event.split('\n');
    return { name: name.slice('event: '.length), data: JSON.parse(data.slice('data: '.length)) };
  });
}

let service: Service;
beforeAll(async () => {
  const moods = ['good', 'repairs', 'never'].map((mood) => [mood, fixture('answers-json.js', mood)]);
  service = await startWithPrograms(Object.fromEntries(moods));
});
afterAll(() => service.stop());

describe('With the demo model, which supports schemas and images', () => {
  it.each([
    ['/ask', 'prompt'],
    ['/chat', 'message'],
  ])('POST %s answers with a value that matches the schema', async (path, field) => {
    const { status, body } = await service.post(path, { [field]: 'Where?', schema });
    expect(status).toBe(200);
    expect(body.structured).toEqual({ city: expect.any(String) });
    expect(body.structured).toEqual(JSON.parse(body.response as string));
  });

  it('sends the value in one piece in a stream, and in its last event', async () => {
    const events = await streamed(service, '/ask', { prompt: 'Where?', schema });
    expect(events.map(({ name }) => name)).toEqual(['started', 'delta', 'done']);
    expect(JSON.parse(events[1]?.data.text)).toEqual(events[2]?.data.structured);
  });

  it('accepts images, also in a conversation, and continues it', async () => {
    const { body } = await service.post('/ask', { prompt: 'What is this?', images });
    expect(body.response).toContain('I was given an image (image/png, 12 bytes)');
    const chat = await service.post('/chat', { message: 'My name is Ada', images: [...images, ...images] });
    expect((chat.body.response as string).match(/I was given an image/g)).toHaveLength(2);
    const { conversation_id } = chat.body;
    const next = await service.post('/chat', { message: 'What is my name?', conversation_id });
    expect(next.body).toMatchObject({ response: expect.stringContaining('Ada'), message_count: 4 });
  });

  it.each([
    ['a text that is called an image', { images: [{ media_type: 'image/png', data: 'aGVsbG8=' }] }, 'images.0.data'],
    ['an image type that is not known', { images: [{ media_type: 'image/bmp', data: png }] }, 'images.0.media_type'],
    ['an effort, of which it knows nothing', { effort: 'low' }, 'effort'],
    ['an effort that is none', { effort: 'huge' }, 'effort'],
    ['a schema that is none', { schema: { type: 'object', properties: 5 } }, 'schema'],
    ['a schema of lists', { schema: { type: 'array' } }, 'schema'],
    ['a schema that refers to another host', { schema: { $ref: 'http://127.0.0.1:1/' } }, 'schema'],
  ])('rejects %s', async (_, fields, path) => {
    const { status, body } = await service.post('/ask', { prompt: 'Hi', ...fields });
    expect([status, body.error]).toEqual([400, 'validation_error']);
    expect(body.details).toMatchObject([{ path }]);
  });
});

describe('With a program that only supports text', () => {
  it.each([
    ['answers with it', 'good', 200],
    ['answers with it when it is asked to repair its answer', 'repairs', 200],
    ['never does', 'never', 500],
  ])('a value is checked if the program %s', async (_, model, expected) => {
    const asked = await service.post('/ask', { prompt: 'Which city?', schema, model });
    const said = await service.post('/chat', { message: 'Which city?', schema, model });
    for (const { status, body } of [asked, said]) {
      expect(status).toBe(expected);
      if (status === 200) expect(body).toMatchObject({ structured: { city: 'Ulm' }, response: '{"city":"Ulm"}' });
      else expect(body).toMatchObject({ error: 'cli_error', reason: 'schema_mismatch' });
    }
    if (expected !== 200) return;
    const { conversation_id } = said.body;
    const next = await service.post('/chat', { message: 'And now in words.', conversation_id, model });
    expect(next.body).toMatchObject({ response: 'The city is Ulm.', message_count: 4 });
    expect(next.body).not.toHaveProperty('structured');
  });

  it('images and an effort are rejected before the program starts', async () => {
    for (const [path, fields] of Object.entries({ images: { images }, effort: { effort: 'high' } })) {
      const { status, body } = await service.post('/ask', { prompt: 'Hi', model: 'good', ...fields });
      expect([status, body.error]).toEqual([400, 'validation_error']);
      expect(body.details).toEqual([{ path, message: 'the model CLI of this service takes none' }]);
    }
  });
});
