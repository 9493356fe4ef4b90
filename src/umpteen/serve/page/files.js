// Texts from files: JSONL, CSV, TSV, or one text a file.

const READERS = { jsonl, ndjson: jsonl, csv, tsv: csv, txt: plain, md: plain };

/** Return `{id, text, labels}` for each text; other files of a folder are passed over. */
export async function readFiles(files) {
	const known = files.filter(({ name }) => READERS[ending(name)]);
	if (!known.length) throw new Error("None of these files ends in .jsonl, .csv, .tsv, .txt or .md.");
	const read = await Promise.all(known.map(readFile));
	return read.flat().filter(({ text }) => text.trim());
}

const ending = (name) => name.toLowerCase().split(".").at(-1);

async function readFile(file) {
	try {
		return READERS[ending(file.name)](await file.text(), file.webkitRelativePath || file.name);
	} catch (problem) {
		throw new Error(`Cannot read ${file.name}: ${problem.message}`);
	}
}

function plain(content, name) {
	return [{ id: name, text: content }];
}

export function jsonl(content) {
	return content.split("\n").flatMap((line, i) => (line.trim() ? [fromLine(line, i + 1)] : []));
}

function fromLine(line, number) {
	let found = null;
	try {
		found = JSON.parse(line);
	} catch {
		throw new Error(`line ${number} is not JSON`);
	}
	const { id, text, labels } = found ?? {};
	if (typeof text !== "string") throw new Error(`line ${number} has no "text"`);
	return { id: id?.toString(), text, labels: [labels ?? []].flat().map(String) };
}

export function csv(content) {
	const header = content.split(/\r?\n/, 1)[0];
	const separator = [",", ";", "\t"].reduce((best, one) => (header.split(one).length > header.split(best).length ? one : best));
	const [names, ...rows] = cells(content, separator);
	const [id, text, labels] = ["id", "text", "labels"].map((name) => names.indexOf(name));
	if (text < 0) throw new Error(`the columns are ${names.join(", ")}; expected a column "text"`);
	return rows.map((row) => ({
		id: row[id],
		text: row[text] ?? "",
		labels: row[labels]?.split("|").map((name) => name.trim()).filter(Boolean),
	}));
}

/** Return the rows that are not blank, as lists of cells; quoted cells may have line breaks. */
function cells(content, separator) {
	const pattern = new RegExp(`"((?:[^"]|"")*)"|([^${separator}\\r\\n]+)|(${separator})|(\\r?\\n)`, "g");
	const rows = [[""]];
	for (const [, quoted, bare, next, line] of content.matchAll(pattern)) {
		if (line) rows.push([""]);
		else if (next) rows.at(-1).push("");
		else rows.at(-1)[rows.at(-1).length - 1] += quoted?.replaceAll('""', '"') ?? bare;
	}
	return rows.filter((row) => row.some(Boolean));
}
