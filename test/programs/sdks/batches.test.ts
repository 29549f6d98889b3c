import { type SdkClient, startSdkClient } from '../../support/clients/sdk-client.js';
import { type Service, startService } from '../../support/service/service.js';

let client: SdkClient;
let service: Service;

beforeAll(async () => {
  client = await startSdkClient('batches');
  service = await startService({ env: { MODEL_API_FILES: 'memory' } });
}, 600_000);

afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await service?.stop();
});

const invoice = 'The sum of 40 euros is due.';
/** Prompt with the document, as a model CLI without documents gets it. */
const asked = `<document name="invoice.txt">\n${invoice}\n</document>\n\nWhich sum?`;

const said = ['Hello', 'I am sad', 'Bye'];

describe('The SDK of OpenAI', () => {
  it.each([
    ['/v1/chat/completions', 'chat.completion'],
    ['/v1/responses', 'response'],
  ])('uploads a file, runs it as a batch of %s and downloads the results', async (endpoint, object) => {
    const { result } = await client.call<object>(service, 'openai', 'batch', { said, extra: { endpoint } });
    expect(result).toEqual({
      status: 'completed',
      counts: { total: 4, completed: 3, failed: 1 },
      ids: ['line 0', 'line 1', 'line 2'],
      objects: [object],
      errors: [400],
      isListed: true,
      deleted: true,
    });
  });

  it('cancels a batch', async () => {
    const { result } = await client.call<object>(service, 'openai', 'cancel', {});
    expect(result).toEqual({ status: 'cancelled', isWhole: true });
  });

  it('asks about an uploaded document, and continues after its deletion', async () => {
    const { result } = await client.call<object>(service, 'openai', 'document', { said: [invoice] });
    expect(result).toEqual({ texts: [asked, asked], continued: 'And when?', refused: 'NotFoundError' });
  });

  it('raises its error for a file that does not exist', async () => {
    const { failure } = await client.failure(service, 'openai', 'missing', {});
    expect(failure).toMatchObject({ class: 'NotFoundError', status: 404 });
  });
});

describe('The SDK of Anthropic', () => {
  it('runs a batch, reads its results and deletes it', async () => {
    const { result } = await client.call<object>(service, 'anthropic', 'batch', { said });
    expect(result).toEqual({
      counts: { processing: 0, succeeded: 3, errored: 1, canceled: 0, expired: 0 },
      results: [
        ['bad', 'errored', null],
        ['line-0', 'succeeded', 'text'],
        ['line-1', 'succeeded', 'text'],
        ['line-2', 'succeeded', 'text'],
      ],
      isListed: true,
      type: 'message_batch_deleted',
    });
  });

  it('cancels a batch', async () => {
    const { result } = await client.call<object>(service, 'anthropic', 'cancel', {});
    expect(result).toEqual({ processing: 0, isWhole: true, isCancelled: true });
  });

  it('uploads, lists page by page, downloads and deletes a file', async () => {
    const { result } = await client.call<object>(service, 'anthropic', 'file', {});
    const file = { name: 'a.txt', bytes: 5, lifeSeconds: 3600, text: 'bytes' };
    expect(result).toEqual({ ...file, isListed: true, type: 'file_deleted' });
  });

  it('asks about an uploaded document, and counts its tokens', async () => {
    const { result } = await client.call<object>(service, 'anthropic', 'document', { said: [invoice] });
    expect(result).toEqual({ text: asked, hasTokens: true, refused: 'NotFoundError' });
  });

  it('raises its error for a batch that does not exist', async () => {
    const { failure } = await client.failure(service, 'anthropic', 'missing', {});
    expect(failure).toMatchObject({ class: 'NotFoundError', status: 404, type: 'not_found_error' });
  });
});
