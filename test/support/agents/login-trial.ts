import { until } from '../basics/until.js';
import type { Answer, Service } from '../service/service.js';
import { startWithClaude } from './claude-service.js';
import { conversationOf, type MessagesApi, says, stalls } from './messages-api-stub.js';
import type { TokenEndpoint } from './token-endpoint.js';

const settings = {
  ANTHROPIC_API_KEY: '',
  MODEL_API_CLI_ENV: 'ANTHROPIC_BASE_URL,HTTPS_PROXY,NO_PROXY,NODE_EXTRA_CA_CERTS,SSL_CERT_FILE',
  MODEL_API_STANDBY: '3',
  MODEL_API_LIVE_SESSIONS: '4',
  MODEL_API_READINESS_INTERVAL_SECONDS: '2',
  MODEL_API_DRAIN_TIMEOUT_SECONDS: '1',
  MODEL_API_TIMEOUT: '10',
};

/** Starts a service with a claude whose login is in files and whose token endpoint is `endpoint`. */
export function startWithLogin(api: MessagesApi, endpoint: TokenEndpoint, env = {}): Promise<Service> {
  return startWithClaude(api, { env: { ...settings, ...endpoint.env, ...env } });
}

/** Maximum time before a client disconnects: covers all steps of a job. */
const leaveMs = 2000;
const stallingPrompt = 'never answer';

/**
 * Sends, cancels and times out jobs until the login has been refreshed this often, while the service checks its CLI
 * every two seconds. During the refreshes that `endsAt` names, stops the service and starts the next. Returns the
 * number of jobs by HTTP status; 0 for disconnected clients.
 */
export async function tryLogin(
  api: MessagesApi,
  endpoint: TokenEndpoint,
  { refreshes, endsAt }: { readonly refreshes: number; readonly endsAt: readonly number[] },
): Promise<ReadonlyMap<number, number>> {
  const jobs = new Map<number, number>();
  const count = (status: number) => jobs.set(status, (jobs.get(status) ?? 0) + 1);
  api.behave = (request) =>
    conversationOf(request).some(({ text }) => text === stallingPrompt) ? stalls : says('yes');
  for (const end of [...endsAt, refreshes]) {
    const service = await startWithLogin(api, endpoint);
    const isOver = () => endpoint.refreshes >= end || endpoint.refused > 0;
    const load = [asks, chats, sendAndDisconnect, timeouts].map((run) => run(service, isOver, count));
    await until(isOver, `refresh ${end}`, 20_000 * refreshes);
    await service.stop(); // during the refresh: the endpoint has not answered
    await Promise.all(load);
    if (endpoint.refused > 0) break;
  }
  return jobs;
}

type Count = (status: number) => void;
type Load = (service: Service, isOver: () => boolean, count: Count) => Promise<void>;

const asks: Load = (service, isOver, count) =>
  repeat(isOver, async () => count(await statusOf(service.post('/ask', { prompt: 'is it?' }))));

const chats: Load = async (service, isOver, count) => {
  let id: unknown;
  await repeat(isOver, async () => {
    const body = { message: 'is it?', ...(typeof id === 'string' && { conversation_id: id }) };
    count(
      await statusOf(
        service.post('/chat', body).then((answer) => {
          id = answer.body.conversation_id;
          return answer;
        }),
      ),
    );
  });
};

const sendAndDisconnect: Load = (service, isOver, count) =>
  repeat(isOver, async () =>
    count(await statusOf(service.post('/ask', { prompt: stallingPrompt }, {}, AbortSignal.timeout(leaveMs)))),
  );

const timeouts: Load = (service, isOver, count) =>
  repeat(isOver, async () => count(await statusOf(service.post('/ask', { prompt: stallingPrompt }))));

async function repeat(isOver: () => boolean, run: () => Promise<void>): Promise<void> {
  while (!isOver()) await run();
}

function statusOf(answer: Promise<Answer>): Promise<number> {
  return answer.then(
    ({ status }) => status,
    () => 0,
  );
}
