/** request METHOD URL [BODY [KEY]]: prints the status and the body of one answer. */
const [method, url, body, key] = process.argv.slice(2);
const headers = { 'content-type': 'application/json', ...(key && { 'x-api-key': key }) };
fetch(url, { method, headers, ...(body && { body }) })
  .then(async (response) => process.stdout.write(`${response.status} ${await response.text()}\n`))
  .catch((error) => {
    process.stderr.write(`${error.cause?.code ?? error.message}\n`);
    process.exitCode = 1;
  });
