import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { fixture, startService, startWithProgram } from '../../support/service/service.js';

describe('POST /ask', () => {
  it('answers a prompt with the demo model', async () => {
    await using service = await startService();
    const { status, body } = await service.post('/ask', { prompt: 'Hello, my name is Ada' });
    expect(status).toBe(200);
    expect(body).toMatchObject({ success: true, model: 'eliza', response: expect.stringContaining('Ada') });
    expect(body.usage).toEqual({ input_tokens: expect.any(Number), output_tokens: expect.any(Number) });
  });

  it.each([
    ['by a relative path', './model.sh', {}],
    ['along a relative PATH', 'model.sh', { PATH: `.:${process.env.PATH}` }],
  ])('runs a program found %s, resolved from the working directory of the service', async (_, command, env) => {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'model.sh'), '#!/bin/sh\nexec cat\n', { mode: 0o755 });
    await using service = await startWithProgram(command, env, { folder: folder.path });
    expect(await service.post('/ask', { prompt: 'hello' })).toMatchObject({ status: 200, body: { response: 'hello' } });
  });

  it('answers with the output of any program that reads its stdin', async () => {
    await using service = await startWithProgram(fixture('upper.js'));
    const { status, body } = await service.post('/ask', { prompt: 'grüße 🚀' });
    expect(status).toBe(200);
    expect(body).toMatchObject({ success: true, response: 'GRÜSSE 🚀', usage: null });
  });
});
