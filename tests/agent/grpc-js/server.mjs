// SPDX-License-Identifier: Apache-2.0
//
// A collector of OTLP over gRPC on grpc-js, which has HTTP/2 from Node.js and decodes by proto-loader: `server.mjs PROTOS OPTIONS`.
// Options, answers and what is told are those of ../grpc_server.py; nothing is kept in a folder, and it never listens anew. Each
// line tells, too, how many functions of samples' stacks have names, which takes the dictionary.
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";
import { readFileSync } from "node:fs";

const [protos, text] = process.argv.slice(2);
const options = JSON.parse(text);
const answers = options.answers ?? [];
const definition = loader.loadSync("profiles.proto", {
	includeDirs: [new URL(".", import.meta.url).pathname, protos],
	keepCase: true,
	longs: String,
	defaults: true,
});
const { ProfilesService } = grpc.loadPackageDefinition(definition).opentelemetry.proto.collector.profiles.v1development;

function told(request) {
	const d = request.dictionary;
	const tables = ["mapping", "location", "function", "link", "string", "attribute", "stack"].map((name) => d[`${name}_table`].length);
	let samples = 0, named = 0;
	for (const resource of request.resource_profiles)
		for (const scope of resource.scope_profiles)
			for (const profile of scope.profiles)
				for (const sample of profile.samples) {
					samples += sample.timestamps_unix_nano.length;
					for (const location of d.stack_table[sample.stack_index].location_indices)
						for (const line of d.location_table[location].lines)
							named += d.string_table[d.function_table[line.function_index].name_strindex] !== "";
				}
	return { samples, named, tables: Math.min(...tables) };
}

// google.rpc.Status with a RetryInfo.
function statusWithDelay(code, seconds) {
	const field = (number, data) => Buffer.concat([Buffer.from([(number << 3) | 2, data.length]), data]);
	const info = Buffer.concat([
		field(1, Buffer.from("type.googleapis.com/google.rpc.RetryInfo")),
		field(2, field(1, Buffer.from([8, seconds]))),
	]);
	return Buffer.concat([Buffer.from([8, code]), field(3, info)]);
}

let seen = 0;

function export_(call, callback) {
	const answer = answers[seen++] ?? null;
	console.log(JSON.stringify({ answer, peer: call.getPeer(), metadata: call.metadata.getMap(), ...told(call.request) }));
	if (!answer)
		return callback(null, {});
	if ("rejected" in answer)
		return callback(null, { partial_success: { rejected_profiles: answer.rejected, error_message: answer.message } });
	const metadata = new grpc.Metadata();
	if ("delay" in answer)
		metadata.set("grpc-status-details-bin", statusWithDelay(answer.code, answer.delay));
	return callback({ code: answer.code, details: answer.message ?? "no", metadata });
}

const read = (name) => (options[name] ? readFileSync(options[name]) : null);
const credentials = options.cert
	? grpc.ServerCredentials.createSsl(read("client_ca"), [{ private_key: read("key"), cert_chain: read("cert") }], Boolean(options.client_ca))
	: grpc.ServerCredentials.createInsecure();
const server = new grpc.Server();
server.addService(ProfilesService.service, { Export: export_ });
server.bindAsync(`127.0.0.1:${options.port ?? 0}`, credentials, (error, port) => {
	if (error)
		throw error;
	console.log(port);
});
process.stdin.resume().on("end", () => server.tryShutdown(() => process.exit(0)));
