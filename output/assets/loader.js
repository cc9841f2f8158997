window.pysample = {};
window.pysample.ready = (async () => {
	const packed = document.getElementById("pysample-page").textContent.replaceAll("~", "<");
	const bytes = new DataView(new ArrayBuffer(packed.length / 5 * 4));
	for (let i = 0; i < packed.length; i += 5) {
		let word = 0;
		for (let k = 0; k < 5; k++)
			word = word * 85 + packed.charCodeAt(i + k) - 40;
		bytes.setUint32(i / 5 * 4, word);
	}
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
	const [css, html, js] = (await new Response(stream).text()).split("\0");
	const add = (name, content) => document.head.append(Object.assign(document.createElement(name), { textContent: content }));
	add("style", css);
	document.body.append(document.createRange().createContextualFragment(html));
	add("script", js);
	await window.pysample.started;
})();
