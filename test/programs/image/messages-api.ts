import { echoes, startMessagesApi } from '../../support/agents/messages-api-stub.js';

/** messages-api PORT: a stub of the Messages API that repeats each prompt, until it is terminated. */
async function main(port: number): Promise<void> {
  const api = await startMessagesApi(port);
  api.behave = echoes;
}

void main(Number(process.argv[2]));
