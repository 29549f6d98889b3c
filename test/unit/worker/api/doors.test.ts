import { anthropicDoor } from '../../../../src/features/anthropic/worker.js';
import { ollamaDoor } from '../../../../src/features/ollama/worker.js';
import { openAiDoor } from '../../../../src/features/openai/worker.js';
import { findDoor, haveModels, noSuchDoor, speakAsClient } from '../../../../src/worker/api/doors.js';
import type { Handler } from '../../../../src/worker/http/exchange.js';
import { request } from '../../../support/clients/raw-http.js';
import { answerOf } from '../../../support/doors/express-server.js';

const told: Handler = (req, res) => void res.json({ url: req.url });

const doors = [ollamaDoor, anthropicDoor, openAiDoor];

async function urlFor(target: string, headers: readonly string[] = []): Promise<unknown> {
  return (await answerOf([findDoor(doors), told], request(`POST ${target}`, headers))).body.url;
}

describe('A path', () => {
  it.each([
    ['/v1/chat/completions', '/v1/chat/completions'],
    ['/chat/completions', '/v1/chat/completions'],
    ['/completions', '/v1/completions'],
    ['/v1/v1/chat/completions', '/v1/chat/completions'],
    ['/v1//chat/completions', '/v1/chat/completions'],
    ['//chat/completions', '/v1/chat/completions'],
    ['//v1///v1//chat/completions', '/v1/chat/completions'],
    ['/chat/completions/', '/v1/chat/completions'],
    ['/v1/chat/completions//', '/v1/chat/completions'],
    ['/chat/completions?a=/v1/b', '/v1/chat/completions?a=/v1/b'],
    ['http://localhost/chat/completions?a', 'http://localhost/v1/chat/completions?a'],
    ['/responses', '/v1/responses'],
    ['/responses/resp_1/cancel', '/v1/responses/resp_1/cancel'],
    ['/messages/count_tokens', '/v1/messages/count_tokens'],
    ['/models/gpt-5', '/v1/models/gpt-5'],
    ['/models/codex%2Fgpt-5', '/v1/models/codex%2Fgpt-5'],
    ['/v1/models/', '/v1/models'],
    ['/models/', '/v1/models'],
    ['//models?a', '/v1/models?a'],
    ['/v1/v1', '/v1'],
    ['/v1/', '/v1'],
    ['/embeddings', '/v1/embeddings'],
    ['/audio/speech', '/v1/audio/speech'],
    ['/v1/v1/v1/models', '/v1/models'],
    ['/v1/v1/v1/v1/models', '/v1/v1/models'],
  ])('of an SDK is rewritten to an API: %s', async (path, door) => {
    expect(await urlFor(path)).toBe(door);
  });

  it.each([
    ...['/', '/ask', '/ask/', '//ask', '/chat', '/chat/', '/chat/x', '/chat/completion', '/chat/completionsx'],
    ...[
      ...['/models', '/V1/chat/completions', '/v1%2fchat/completions', '/chat%2fcompletions', '/v1x/models'],
      '/messagesx',
    ],
    ...['/chat//completions', '/./v1/models', '/jobs/v1', '*', '/health?x=/v1/models', '/v1;a/models', '/embeddingsx'],
  ])('of another kind is not rewritten: %s', async (path) => {
    expect(await urlFor(path)).toBe(path);
  });

  it('of the models is rewritten to the Anthropic format if the request asks for it', async () => {
    for (const path of ['/models', '/models/', '//models?limit=5'])
      expect(await urlFor(path, ['anthropic-version: 2023-06-01'])).toBe(path.replace(/^\/+models\/?/, '/v1/models'));
  });

  it('with many slashes is processed quickly', async () => {
    for (const path of [`/v1${'/'.repeat(8000)}x`, `/${'/'.repeat(8000)}x${'/'.repeat(7000)}y`])
      expect(await urlFor(path)).toEqual(expect.any(String));
  });
});

describe('The API of a request', () => {
  const version = 'anthropic-version: 2023-06-01';
  const refuse = noSuchDoor({ doors, routes: [] });

  /** Returns whether the error of a request has the form of Anthropic's API. */
  async function isAnthropic(path: string, headers: readonly string[] = []): Promise<boolean> {
    const { body } = await answerOf([speakAsClient(doors), refuse], request(`POST ${path}`, headers));
    return (body as { readonly type?: string }).type === 'error';
  }

  it('is the one that its headers name, at a path that several APIs have', async () => {
    for (const path of ['/v1/models', '/v1/files', '/v1/no-such-path'])
      expect([path, await isAnthropic(path, [version]), await isAnthropic(path)]).toEqual([path, true, false]);
    expect(await isAnthropic('/v1/messages')).toBe(true);
  });

  it('is the only one that has its path, because a gateway may add headers to all requests', async () => {
    for (const path of ['/v1/chat/completions', '/v1/batches', '/v1/embeddings'])
      expect([path, await isAnthropic(path, [version])]).toEqual([path, false]);
  });
});

it('A service has lists of models if an API has bodies of models', () => {
  expect([haveModels([anthropicDoor]), haveModels([ollamaDoor])]).toEqual([true, false]);
});
