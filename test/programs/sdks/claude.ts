import {
  conversationOf,
  echoes,
  type MessagesRequest,
  refusals,
  saysAndCalls,
  saysAndGives,
  saysSlowly,
  systemOf,
  tokens,
} from '../../support/agents/messages-api-stub.js';
import { until } from '../../support/basics/until.js';
import type { SdkInput } from '../../support/clients/sdk-client.js';
import { pixel, type SdkFace, type SdkLab } from '../../support/clients/sdk-lab.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { failureForms } from './failures.js';

const used = { input: tokens.input + tokens.cacheCreation + tokens.cacheRead, output: tokens.output };
const model = 'claude-sonnet-5';
const ada = { name: 'Ada', age: 36 };
/**
 * Five times the maximum from the end of a job to the end of its request to the model, for a busy machine. Its process
 * may stay: docs/operations.md, renewed processes.
 */
const endedMs = 5000;

/** Tests the answers that SDKs receive from the real claude. */
export function describeClaude(lab: SdkLab, face: SdkFace): void {
  const ask = (call: string, input: SdkInput) => lab.client.ask(lab.claude, face.name, call, { model, ...input });

  describe('with claude', () => {
    beforeEach(() => {
      lab.api.behave = echoes;
    });

    it('gets an answer, with the tokens used', async () => {
      const answer = await ask('ask', { prompt: 'grüße 🚀 to all' });
      expect(answer).toMatchObject({ text: 'grüße 🚀 to all', model, finish: face.endings.whole, usage: used });
      expect(lab.api.requests.at(-1)?.body.model).toBe(model);
    });

    it('streams an answer, with the tokens used', async () => {
      const answer = await ask('stream', { prompt: 'grüße 🚀 to all' });
      expect(answer).toMatchObject({ text: 'grüße 🚀 to all', finish: face.endings.whole });
      expect(answer.count).toBeGreaterThan(1);
      expect(answer.usage?.output).toBe(used.output);
    });

    it('continues a conversation with a system text in one process', async () => {
      const input = { model, system: 'Be brief.', said: ['One', 'Two', 'Three'] };
      const { seen } = await lab.client.call(lab.claude, face.name, 'turns', input);
      expect(seen.map((answer) => answer['x-session'])).toEqual(['replay', 'live', 'live']);
      const last = lab.api.requests.at(-1);
      const heard = last === undefined ? [] : conversationOf(last).map(({ role, text }) => `${role}: ${text}`);
      expect(heard).toEqual(['user: One', 'assistant: One', 'user: Two', 'assistant: Two', 'user: Three']);
      expect(last === undefined ? [] : systemOf(last)).toContain('Be brief.');
    });

    it.each([...face.structured, ...face.objects, 'tool'])('gets a value with %s', async (call) => {
      const isCall = call === 'tool' || call === 'functionCalling';
      const calls = ({ body: { tools = [] } }: MessagesRequest) =>
        saysAndCalls('Let me see.', { name: tools[0]?.name ?? '', input: ada });
      lab.api.behave = isCall ? calls : () => saysAndGives('Let me see.', ada);
      const answer = await ask(call, { prompt: 'Who is she?' });
      expect(call === 'tool' ? answer.tool : answer.value).toEqual(
        call === 'tool' ? { name: 'note_person', value: ada } : ada,
      );
    });

    it('sends an image', async () => {
      await ask('ask', { prompt: 'What is it?', image: pixel });
      const data = pixel.slice(pixel.indexOf(',') + 1);
      expect(JSON.stringify(lab.api.requests.at(-1)?.body.messages)).toContain(data);
    });

    it('ends the request to the model soon when it disconnects in the middle of an answer', async () => {
      lab.api.behave = () => saysSlowly(100, ...Array.from({ length: 100 }, (_, n) => `${n} `));
      const { result } = await lab.client.call<object>(lab.claude, face.name, 'abort', { model, prompt: 'Count.' });
      await until(() => lab.api.openAnswers === 0, 'the request to the model to end', endedMs);
      await untilJobs(lab.claude, 0, 0);
      expect(result).toMatchObject({ texts: ['0 '] });
    });

    it.each([
      ['overloaded', 'overloaded'],
      ['prompt_too_long', 'promptTooLong'],
      ['other', 'broken'],
    ] as const)('raises the matching error if the API refuses: %s', async (reason, refusal) => {
      lab.api.behave = () => refusals[refusal];
      const { failure, seen } = await lab.client.failure(lab.claude, face.name, 'ask', { model, prompt: 'Hello' });
      const [status, type, code] = failureForms[reason][face.dialect] as readonly [number, string, string?];
      expect(failure).toMatchObject({ class: face.classOf(status, code ?? ''), status, type });
      expect(seen).toMatchObject([{ status, 'x-should-retry': 'false' }]);
    });
  });
}
