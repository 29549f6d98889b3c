import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { fixture, startWithPrograms } from '../../support/service/service.js';

describe('POST /ask', () => {
  it('answers with the output of a program that reads its stdin, also if the working directory of the service has it', async () => {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'model.sh'), '#!/bin/sh\nexec cat\n', { mode: 0o755 });
    const programs = { upper: fixture('upper.js'), 'by-path': './model.sh', 'on-path': 'model.sh' };
    const env = { PATH: `.:${process.env.PATH}` };
    await using service = await startWithPrograms(programs, env, { folder: folder.path });
    const prompt = 'grüße 🚀';
    for (const [model, response] of Object.entries({ upper: 'GRÜSSE 🚀', 'by-path': prompt, 'on-path': prompt })) {
      const { status, body } = await service.post('/ask', { prompt, model });
      expect([status, body]).toMatchObject([200, { success: true, response, usage: null }]);
    }
    const { status, body } = await service.post('/ask', { prompt: 'Hello, my name is Ada' });
    expect([status, body]).toMatchObject([200, { model: 'demo/eliza', response: expect.stringContaining('Ada') }]);
    expect(body.usage).toEqual({ input_tokens: expect.any(Number), output_tokens: expect.any(Number) });
  });
});
