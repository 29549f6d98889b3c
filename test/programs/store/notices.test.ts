import { join } from 'node:path';
import { temporaryFolder } from '../../support/basics/folder.js';
import { until } from '../../support/basics/until.js';
import { Receiver } from '../../support/service/receiver.js';
import { type Service, startService } from '../../support/service/service.js';

interface Entry {
  readonly id: string;
  readonly status: string;
}

async function askInBackground(service: Service): Promise<string> {
  const { status, body } = await service.post('/ask', { prompt: 'Hello' }, { Prefer: 'respond-async' });
  expect(status).toBe(202);
  return String(body.job_id);
}

async function deliveriesOf(service: Service): Promise<Entry[]> {
  return (await service.get('/webhooks/deliveries')).body.deliveries as Entry[];
}

describe('A receiver of notices', () => {
  it('that hangs delays no request and no end, and gets the notice from the next service after a kill', async () => {
    await using folder = await temporaryFolder();
    await using receiver = await Receiver.start();
    const env = { ...receiver.env, MODEL_API_STORE: `sqlite:${join(folder.path, 'state', 'store.db')}` };
    let id: string;
    {
      await using service = await startService({ env });
      receiver.answer = () => {};
      id = await askInBackground(service);
      await receiver.notice('job.ended');
      expect((await service.post('/ask', { prompt: 'Hello' })).status).toBe(200);
      process.kill(service.pid, 'SIGKILL'); // during the attempt
      await service.exited;
    }
    receiver.answer = (res) => void res.writeHead(204).end();
    await using service = await startService({ env });
    const isDelivered = async () =>
      (await deliveriesOf(service)).find((each) => each.id === `job_${id}`)?.status === 'delivered';
    await until(isDelivered, 'the delivery by the next service');
    receiver.answer = () => {};
    const seen = receiver.notices.length;
    await askInBackground(service);
    await until(() => receiver.notices.length > seen, 'an attempt that hangs');
    expect(await service.stop()).toBe(0);
  });
});
