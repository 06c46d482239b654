// The TypeScript SDK's clients against the server `notes`: do what the test asks of every client and print what came,
// as JSON.
//
// usage: node client.mjs NODE_MODULES PACKAGE ERA DIRECTORY (URL | PROGRAM ARGUMENT…)
//
// PACKAGE is `sdk`, which speaks until 2025-11-25, or `client`; ERA is `legacy` or `modern`.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, name, era, directory, ...target] = process.argv.slice(2);
const load = path => import(pathToFileURL(join(modules, '@modelcontextprotocol', path)));

async function generation() {
    if (name === 'client') {
        return { ...(await load('client/dist/index.mjs')), ...(await load('client/dist/stdio.mjs')) };
    }
    const parts = ['index', 'stdio', 'streamableHttp'].map(part => load(`sdk/dist/esm/client/${part}.js`));
    const { ResourceUpdatedNotificationSchema } = await load('sdk/dist/esm/types.js');
    return { ...Object.assign({}, ...(await Promise.all(parts))), ResourceUpdatedNotificationSchema };
}

const SDK = await generation();
const versionNegotiation = { mode: era === 'legacy' ? 'legacy' : 'auto' };
const client = new SDK.Client({ name: 'test', version: '1' }, name === 'client' ? { versionNegotiation } : {});
const transport = target.length === 1
    ? new SDK.StreamableHTTPClientTransport(new URL(target[0]))
    : new SDK.StdioClientTransport({ command: target[0], args: target.slice(1) });

// The older client tells it to nobody but its transport.
let revision = null;
const told = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = version => {
    revision = version;
    told?.(version);
};

/** All resources, page by page; the newer client turns pages by itself unless a page is named. */
async function list() {
    const found = [];
    let pages = 0;
    let cursor;
    do {
        const page = await client.listResources(cursor === undefined ? undefined : { cursor });
        found.push(...page.resources);
        pages += 1;
        cursor = page.nextCursor;
    } while (cursor !== undefined);
    return { found, pages: name === 'client' ? null : pages };
}

const read = async uri => (await client.readResource({ uri })).contents[0].text;

async function refusal(uri) {
    try {
        return await read(uri);
    } catch (error) {
        return { code: error.code, data: error.data };
    }
}

/** Subscribes to a file, changes it, and waits until that is told. */
async function change() {
    const uri = 'notes://todo.md';
    const updated = new Promise(resolve => {
        const handler = notification => resolve(notification.params.uri);
        client.setNotificationHandler(
            SDK.ResourceUpdatedNotificationSchema ?? 'notifications/resources/updated', handler);
    });
    if (era === 'legacy') {
        await client.subscribeResource({ uri });
    } else {
        await client.listen({ resourceSubscriptions: [uri] });
    }
    writeFileSync(join(directory, 'todo.md'), '# Changed\n');
    return updated;
}

await client.connect(transport);
const { found, pages } = await list();
const { resourceTemplates } = await client.listResourceTemplates();
const { completion } = await client.complete({
    ref: { type: 'ref/resource', uri: 'notes://{file}/outline' },
    argument: { name: 'file', value: 't' },
});
console.log(JSON.stringify({
    revision: client.getNegotiatedProtocolVersion?.() ?? revision,
    server: client.getServerVersion().name,
    resources: found.length,
    pages,
    first: found[0].uri,
    templates: resourceTemplates.map(template => template.uriTemplate),
    text: await read('notes://todo.md'),
    outline: JSON.parse(await read('notes://a%20b.md/outline')),
    error: await refusal('notes://none.md'),
    completed: completion.values,
    updated: await change(),
}));
await client.close();
process.exit(0);
