import { fixture, startService, startWithProgram } from '../support/service.js';

describe('POST /ask', () => {
  it('answers a prompt with the demo model', async () => {
    await using service = await startService();
    const { status, body } = await service.post('/ask', { prompt: 'Hello, my name is Ada' });
    expect(status).toBe(200);
    expect(body).toMatchObject({ success: true, model: 'eliza', response: expect.stringContaining('Ada') });
    expect(body.usage).toEqual({ input_tokens: expect.any(Number), output_tokens: expect.any(Number) });
  });

  it('answers with what any program makes of its stdin', async () => {
    await using service = await startWithProgram(fixture('upper.js'));
    const { status, body } = await service.post('/ask', { prompt: 'grüße 🚀' });
    expect(status).toBe(200);
    expect(body).toMatchObject({ success: true, response: 'GRÜSSE 🚀', usage: null });
  });
});
