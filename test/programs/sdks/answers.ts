import type { SdkInput } from '../../support/clients/sdk-client.js';
import { pixel, type SdkFace, type SdkLab } from '../../support/clients/sdk-lab.js';
import { recovers } from '../../support/jobs/jobs.js';
import type { Service } from '../../support/service/service.js';

const some = expect.any(Number);
const tool = 'note_person';
const echo: SdkInput = { model: 'echo', prompt: 'grüße 🚀 to all' };
const introduction = 'I am Eliza, a demo: a small program with a few fixed rules, not a language model. ';

/** Tests the answers that SDKs receive, with the demo model and with a plain command. */
export function describeAnswers(lab: SdkLab, face: SdkFace): void {
  // Claude Code shows only models whose names begin with its provider.
  const models = ['eliza', 'echo'].map((id) => (face.dialect === 'anthropic' ? `anthropic/${id}` : id));
  const ask = (service: Service, call: string, input: SdkInput) => lab.client.ask(service, face.name, call, input);

  describe('with the demo model', () => {
    it('gets an answer', async () => {
      const answer = await ask(lab.demo, 'ask', echo);
      expect(answer).toMatchObject({ text: echo.prompt, finish: face.endings.whole, model: 'echo' });
      expect(answer.usage).toEqual({ input: 4, output: 4 });
      expect(answer.requestId).toMatch(/^[0-9a-f-]{36}$/);
    });

    it('streams an answer, with the tokens used', async () => {
      const answer = await ask(lab.demo, 'stream', echo);
      expect(answer).toEqual(expect.objectContaining({ text: echo.prompt, finish: face.endings.whole, count: 4 }));
      expect(answer.usage).toMatchObject({ output: 4 });
    });

    if (face.has.includes('models')) {
      it('lists the models, and finds one', async () => {
        const input = { model: 'echo' };
        const { result } = await lab.client.call<string[]>(lab.demo, face.name, 'models', input);
        expect(result).toEqual(models);
        expect((await lab.client.call<string>(lab.demo, face.name, 'model', input)).result).toBe('echo');
        const { failure } = await lab.client.failure(lab.demo, face.name, 'model', { model: 'gpt-of-tomorrow' });
        expect(failure).toMatchObject({ class: 'NotFoundError', status: 404 });
      });
    }

    if (face.has.includes('countTokens')) {
      it('counts tokens', async () => {
        const count = async (input: SdkInput) =>
          (await lab.client.call<number>(lab.demo, face.name, 'countTokens', input)).result;
        const few = await count({ prompt: 'Hello' });
        expect(few).toBeGreaterThan(0);
        expect(await count({ prompt: 'Hello', system: 'Be brief, and be kind.' })).toBeGreaterThan(few + 3);
      });
    }

    it('receives the names of the ignored fields', async () => {
      const input = { ...echo, extra: { temperature: 0.5, top_p: 0.9 } };
      const { seen } = await lab.client.call(lab.demo, face.name, 'ask', input);
      expect(String(seen[0]?.['x-ignored-parameters']).split(', ')).toEqual(
        expect.arrayContaining(['temperature', 'top_p']),
      );
    });

    it('streams with the helper of the SDK', async () => {
      const answer = await ask(lab.demo, 'helper', echo);
      expect(answer).toMatchObject({ text: echo.prompt, streamed: echo.prompt, finish: face.endings.whole });
      expect(answer.usage).toMatchObject({ output: 4 });
    });

    it('continues a conversation in one process', async () => {
      const said = ['My name is Ada.', 'I like maps.', 'What is my name?'];
      const { result, seen } = await lab.client.call<{ texts: string[] }>(lab.demo, face.name, 'turns', { said });
      expect(result.texts[0]).toBe(`${introduction}Nice to meet you, Ada.`);
      expect(result.texts[2]).toBe('Your name is Ada.');
      expect(seen.map((answer) => answer['x-session'])).toEqual(['replay', 'live', 'live']);
    });

    it('sends a system text', async () => {
      const { text } = await ask(lab.demo, 'ask', { system: 'You are Bert.', prompt: 'Who are you?' });
      expect(text).toMatch(/^I am Bert, a demo/);
    });

    it.each(face.structured)('gets a value that matches a zod schema with %s', async (call) => {
      const { value } = await ask(lab.demo, call, { model: 'echo', prompt: 'Ada' });
      expect(value).toEqual({ name: 'Ada', age: 0 });
    });

    it.each(['tool', 'toolStream'])('gets the call of a named function: %s', async (call) => {
      const answer = await ask(lab.demo, call, { model: 'echo', prompt: 'Ada' });
      expect(answer.tool).toEqual({ name: tool, value: { name: 'Ada', age: 0 } });
      expect(answer.finish).toBe(face.endings.tool);
    });

    it('sends the result of a call, and gets an answer', async () => {
      const input = { model: 'echo', prompt: 'Ada', result: 'Noted.' };
      const { result, seen } = await lab.client.call<{ text: string }>(lab.demo, face.name, 'loop', input);
      expect([result.text, seen.map(({ status }) => status)]).toEqual([`The result of ${tool} is: Noted.`, [200, 200]]);
    });

    it.each(['', '/', '/v1', '/v1/', '/v1/v1'])('accepts this base URL: %j', async (base) => {
      expect(await ask(lab.demo, 'ask', { ...echo, base })).toMatchObject({ text: echo.prompt, model: 'echo' });
      if (!face.has.includes('models')) return;
      const { result } = await lab.client.call<string[]>(lab.demo, face.name, 'models', { base });
      expect(result).toEqual(models);
    });

    it('uses the default model with the name default', async () => {
      expect((await ask(lab.demo, 'ask', { ...echo, model: 'default' })).model).toBe('eliza');
    });

    it('sends an image', async () => {
      const { text } = await ask(lab.demo, 'ask', { prompt: 'What is it?', image: pixel });
      expect(text).toMatch(/^I was given an image \(image\/png, 70 bytes\)/);
    });
  });

  describe('with a command', () => {
    it('gets an answer', async () => {
      const answer = await ask(lab.command, 'ask', { model: 'any', prompt: 'Hello' });
      expect(answer).toMatchObject({ text: 'user: Hello', finish: face.endings.whole });
      expect(answer.usage).toEqual({ input: some, output: some });
    });

    it('streams an answer', async () => {
      const answer = await ask(lab.command, 'stream', { prompt: 'Hello' });
      expect(answer).toMatchObject({ text: 'user: Hello', finish: face.endings.whole });
    });

    it('sends a system text, and continues a conversation', async () => {
      const input = { said: ['One', 'Two'], system: 'Be brief.' };
      const { result } = await lab.client.call<{ texts: string[] }>(lab.command, face.name, 'turns', input);
      expect(result.texts[1]).toBe('system: Be brief.\nuser: One\nassistant: system: Be brief.\nuser: Two');
    });

    it.each([...face.structured, ...face.objects])('gets a value with %s, after a repair', async (call) => {
      const { value } = await ask(lab.command, call, { prompt: 'Who is she?' });
      expect(value).toEqual({ name: 'Ada', age: 36 });
    });

    it('gets the call of a named function', async () => {
      const { tool: called } = await ask(lab.command, 'tool', { prompt: 'Who is she?' });
      expect(called).toEqual({ name: tool, value: { name: 'Ada', age: 36 } });
    });

    it('receives an error that images are not supported', async () => {
      const { failure } = await lab.client.failure(lab.command, face.name, 'ask', { prompt: 'What?', image: pixel });
      expect(failure).toMatchObject({ status: 400 });
      expect(failure.message).toMatch(/image/);
    });

    it('ends the program within a second when it disconnects in the middle of an answer', async () => {
      const { result } = await lab.client.call<object>(lab.command, face.name, 'abort', { prompt: 'hang' });
      await recovers(lab.command);
      expect(result).toMatchObject({ texts: ['Well'] });
    });
  });
}
