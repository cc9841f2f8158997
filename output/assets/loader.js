/* Remove an element and decode its contents: base 91 of gzip (docs/formats.md). */
async function unpack(id) {
	const element = document.getElementById(id), text = element.textContent.replaceAll("~", "<"), { length } = text;
	const digits = new TextEncoder().encode(text + "#"), bytes = new Uint8Array(((length >> 1) * 13 + (length & 1) * 6) >> 3);
	for (let i = 0, at = 0, bits = 0, nr = 0; i < length; i += 2) {
		bits |= (digits[i] - 35 + (digits[i + 1] - 35) * 91) << nr;
		for (nr += 13; nr > 7; nr -= 8, bits >>= 8)
			bytes[at++] = bits;
	}
	element.remove();
	return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}
window.pysample = { unpack };
window.pysample.ready = (async () => {
	const [css, html, js] = (await (await unpack("pysample-page")).text()).split("\0");
	const add = (name, content) => document.head.append(Object.assign(document.createElement(name), { textContent: content }));
	add("style", css);
	document.body.append(document.createRange().createContextualFragment(html));
	add("script", js);
	await window.pysample.started;
})();
