/* SPDX-License-Identifier: MIT */
#include "cmd/top/terminal_description.h"

#include <stddef.h>
#include <string.h>

/*
 * From the database of ncurses 6.4, reduced to what curses and the keys of a view need:
 *
 *	infocmp -1 -x NAME, without the other capabilities, | tic; base64 -w80
 */
/* clang-format off */
static const struct terminal_description descriptions[] = {
	{
		"xterm-256color",
		"HgIxAB0ADwBpAQ8DeHRlcm0tMjU2Y29sb3J8cHlzYW1wbGUncyBjb3B5IG9mIHh0ZXJtLTI1NmNvbG9y"
		"AAABAAABAAAAAAAAAAABAQAAAAAAAAAAAAABAAEBUAAAAAgAAAAYAAAA////////////////////////"
		"/////////////////////////////wABAAAAAAEA/////wAAAgATABgAIAAkACgA//8zAEQARgBKAFEA"
		"//9TAGAA//9kAGgAcgB2AP////96AP//fgCDAP//lQD///////+aAJ8ApACpALIAtgC9AP/////PANUA"
		"///////////bAP///////+0A///xAP////////MA///4AP///////////AAAAf//BgEKAf//DgH/////"
		"FAEaAf////8eAf//IgEnASwB////////MAE0ATwB////////////////////////////////////////"
		"RAFNAVYBXwFoAXEBegGDAYwBlQH///////////////+eAbIBuwH/////zQHQAdsB3gHgAeMBQAL//0MC"
		"/////////////////////////////0UC//96Av///////////////////////////////////////34C"
		"////////////////////////////////////////////////////////////////////////////////"
		"////////////////////////////////////////////////////////////////////////////////"
		"////////////////////////////////////////////////////////////////////////////////"
		"/////////////////////////////////////4IC////////////////////////////////////////"
		"////////////////////////////////hwL/////////////////////////////////////////////"
		"////////////////////////////////////////////////////////////////////////////////"
		"/////////////////////////////////////5ACzwINABtbJWklcDElZDslcDIlZHIAG1szZwAbW0gb"
		"WzJKABtbSwAbW0oAG1slaSVwMSVkRwAbWyVpJXAxJWQ7JXAyJWRIAAoAG1tIABtbPzI1bAAIABtbPzEy"
		"bBtbPzI1aAAbW0MAG1tBABtbPzEyOzI1aAAbW1AAG1tNABsoMAAbWzFtABtbPzEwNDloG1syMjswOzB0"
		"ABtbMm0AG1s3bQAbWzdtABtbNG0AG1slcDElZFgAGyhCABsoQhtbbQAbWz8xMDQ5bBtbMjM7MDswdAAb"
		"WzI3bQAbWzI0bQAbWyFwG1s/Mzs0bBtbNGwbPgAbW0wAfwAbWzN+ABtPQgAbT1AAG1syMX4AG09SABtP"
		"UwAbWzE3fgAbWzIwfgAbT0gAG09EABtbNn4AG1s1fgAbT0MAG09BABtbPzFsGz4AG1s/MWgbPQAbWyVw"
		"MSVkUAAbWyVwMSVkTQAbWyVwMSVkQgAbWyVwMSVkQAAbWyVwMSVkUwAbWyVwMSVkTAAbWyVwMSVkRAAb"
		"WyVwMSVkQwAbWyVwMSVkVAAbWyVwMSVkQQAlcDElYxtbJXAyJXsxfSUtJWRiABtjG10xMDQHABtbIXAb"
		"Wz8zOzRsG1s0bBs+ABs4ABtbJWklcDElZGQAGzcACgAbTQAlPyVwOSV0GygwJWUbKEIlOxtbMCU/JXA2"
		"JXQ7MSU7JT8lcDUldDsyJTslPyVwMiV0OzQlOyU/JXAxJXAzJXwldDs3JTslPyVwNCV0OzUlOyU/JXA3"
		"JXQ7OCU7bQAbSAAJAGBgYWFmZmdnaWlqamtrbGxtbW5ub29wcHFxcnJzc3R0dXV2dnd3eHh5eXp6e3t8"
		"fH19fn4AG1taABtPRgAbWzFLABtbMzk7NDltABtbJT8lcDElezh9JTwldDMlcDElZCVlJXAxJXsxNn0l"
		"PCV0OSVwMSV7OH0lLSVkJWUzODs1OyVwMSVkJTttABtbJT8lcDElezh9JTwldDQlcDElZCVlJXAxJXsx"
		"Nn0lPCV0MTAlcDElezh9JS0lZCVlNDg7NTslcDElZCU7bQA=",
	},
	{
		"screen-256color",
		"HgIzAA8ADwBpAccCc2NyZWVuLTI1NmNvbG9yfHB5c2FtcGxlJ3MgY29weSBvZiBzY3JlZW4tMjU2Y29s"
		"b3IAAAEAAAEAAAAAAAAAAAEBUAAAAAgAAAAYAAAA////////////////////////////////////////"
		"/////////////wABAAAAAAEA/////wAAAgATABgAHwAjACcA//8yAEMARQBJAFAA//9SAF4A//9iAGUA"
		"awBvAP////9zAP//dQB6AP//gwD///////+IAI0AkgD//5cAmQCeAP////+nAK0A//////////+zAP//"
		"/////7cA//+7AP///////70A///CAP//////////xgDKAP//0ADUAP//2AD/////3gDkAP/////pAP//"
		"7QDyAPcA////////+wD/AAcB////////////////////////////////////////DwEYASEBKgEzATwB"
		"RQFOAVcBYAH/////////////////////aQH/////egF9AYgBiwGNAZAB5AH//+cB////////////////"
		"/////////////+kB//8qAv///////////////y4C/////////////////////zUC////////////////"
		"////////////////////////////////////////////////////////////////////////////////"
		"////////////////////////////////////////////////////////////////////////////////"
		"////////////////////////////////////////////////////////////////////////////////"
		"/////////////////////zoC////////////////////////////////////////////////////////"
		"////////////////PwL/////////////////////////////////////////////////////////////"
		"////////////////////////////////////////////////////////////////////////////////"
		"/////////////////////0gChwINABtbJWklcDElZDslcDIlZHIAG1szZwAbW0gbW0oAG1tLABtbSgAb"
		"WyVpJXAxJWRHABtbJWklcDElZDslcDIlZEgACgAbW0gAG1s/MjVsAAgAG1szNGgbWz8yNWgAG1tDABtN"
		"ABtbMzRsABtbUAAbW00ADgAbWzFtABtbPzEwNDloABtbMm0AG1s3bQAbWzNtABtbNG0ADwAbW20PABtb"
		"PzEwNDlsABtbMjNtABtbMjRtABspMAAbW0wAfwAbWzN+ABtPQgAbT1AAG1syMX4AG09SABtPUwAbWzE3"
		"fgAbWzIwfgAbWzF+ABtPRAAbWzZ+ABtbNX4AG09DABtPQQAbWz8xbBs+ABtbPzFoGz0AG1slcDElZFAA"
		"G1slcDElZE0AG1slcDElZEIAG1slcDElZEAAG1slcDElZFMAG1slcDElZEwAG1slcDElZEQAG1slcDEl"
		"ZEMAG1slcDElZFQAG1slcDElZEEAG2MbWz8xMDAwbBtbPzI1aAAbOAAbWyVpJXAxJWRkABs3AAoAG00A"
		"G1swJT8lcDYldDsxJTslPyVwMSV0OzMlOyU/JXAyJXQ7NCU7JT8lcDMldDs3JTslPyVwNCV0OzUlOyU/"
		"JXA1JXQ7MiU7bSU/JXA5JXQOJWUPJTsAG0gACQArKywsLS0uLjAwYGBhYWZmZ2doaGlpampra2xsbW1u"
		"bm9vcHBxcXJyc3N0dHV1dnZ3d3h4eXl6ent7fHx9fX5+ABtbWgAbKEIbKTAAG1s0fgAbWzFLABtbMzk7"
		"NDltABtbJT8lcDElezh9JTwldDMlcDElZCVlJXAxJXsxNn0lPCV0OSVwMSV7OH0lLSVkJWUzODs1OyVw"
		"MSVkJTttABtbJT8lcDElezh9JTwldDQlcDElZCVlJXAxJXsxNn0lPCV0MTAlcDElezh9JS0lZCVlNDg7"
		"NTslcDElZCU7bQA=",
	},
	{
		"linux",
		"GgEfAB0ADwBpATQCbGludXh8cHlzYW1wbGUncyBjb3B5IG9mIGxpbnV4AAABAAABAAAAAAAAAAABAQAA"
		"AAAAAAAAAAAAAAEB//8IAP////////////////////////////8IAEAA/////wAAAgATABgAHwAjACcA"
		"//8yAEMARQBJAFUA//9XAGMA//9nAGsAdwB7AP////9/AP//gQD/////hgD///////+LAJAAlQCaAKMA"
		"pQD///////+qALAA//////////////////+2ALoA//++AP///////8AA///FAP//////////yQDOAP//"
		"1ADZAP//3gD/////5ADqAP/////vAP//8wD4AP0A////////AQH/////////////////////////////"
		"////////////////BQEOARcBIAH//ykBMgE7Af//RAH//////////////////00B////////UwFWAWEB"
		"ZAFmAWkBwAH//8MB/////////////////////////////8UB//8GAv///////////////wkC////////"
		"/////////////w0C////////////////////////////////////////////////////////////////"
		"////////////////////////////////////////////////////////////////////////////////"
		"////////////////////////////////////////////////////////////////////////////////"
		"/////////////////////////////////////////////////////xIC////////////////////////"
		"////////////////////////////////////////////////FwL/////////////////////////////"
		"////////////////////////////////////////////////////////////////////////////////"
		"/////////////////////////////////////////////////////yACKgINABtbJWklcDElZDslcDIl"
		"ZHIAG1szZwAbW0gbW0oAG1tLABtbSgAbWyVpJXAxJWRHABtbJWklcDElZDslcDIlZEgACgAbW0gAG1s/"
		"MjVsG1s/MWMACAAbWz8yNWgbWz8wYwAbW0MAG1tBABtbPzI1aBtbPzhjABtbUAAbW00ADgAbWzFtABtb"
		"Mm0AG1s3bQAbWzdtABtbNG0AG1slcDElZFgADwAbW20PABtbMjdtABtbMjRtABtbQAAbW0wAfwAbWzN+"
		"ABtbQgAbW1tBABtbMjF+ABtbW0MAG1tbRAAbWzE3fgAbWzIwfgAbWzF+ABtbRAAbWzZ+ABtbNX4AG1tD"
		"ABtbQQAbWyVwMSVkUAAbWyVwMSVkTQAbWyVwMSVkQgAbWyVwMSVkQAAbWyVwMSVkTAAbWyVwMSVkRAAb"
		"WyVwMSVkQwAbWyVwMSVkQQAbYxtdUgAbOAAbWyVpJXAxJWRkABs3AAoAG00AG1swOzEwJT8lcDEldDs3"
		"JTslPyVwMiV0OzQlOyU/JXAzJXQ7NyU7JT8lcDQldDs1JTslPyVwNSV0OzIlOyU/JXA2JXQ7MSU7bSU/"
		"JXA5JXQOJWUPJTsAG0gACQArKywsLS0uLjAwYGBhYWZmZ2doaGlpampra2xsbW1ubm9vcHBxcXJyc3N0"
		"dHV1dnZ3d3h4eXl6ent7fHx9fX5+ABsJABspMAAbWzR+ABtbMUsAG1szOTs0OW0AG1szJXAxJWRtABtb"
		"NCVwMSVkbQA=",
	},
	{
		"vt100",
		"GgEfAA8AAwAOAbwBdnQxMDB8cHlzYW1wbGUncyBjb3B5IG9mIHZ0MTAwAAABAAABAAAAAAAAAAAAAVAA"
		"CAAYAP////8AAAIAEwAYACQALAD/////NQBKAEwA//9QAP////9SAP//WgD/////////////YgD//2QA"
		"////////////////bQB2AH8A//+IAIoA////////kwCbAP//////////////////////////owD/////"
		"////////pQD//////////6kArQD//7EAtQD//7kA/////70A////////wQD////////FAP///////8kA"
		"zQDVAP/////////////////////////////////////////////dAP///////+YA7wD///gA////////"
		"/////////////wEB/////xkB//8cAR8BIQEoAXQB//93Af////////////////////////////95Af//"
		"//////////////////+sAf//////////////////////////////////////////////////////////"
		"////////////////////////////////////////////////////////////////////////////////"
		"////////////////////////////////////////////////////////////////////////////////"
		"////////////////////////////////////////////////////////////////////////////////"
		"//+zAQ0AG1slaSVwMSVkOyVwMiVkcgAbWzNnABtbSBtbSiQ8NTA+ABtbSyQ8Mz4AG1tKJDw1MD4AG1sl"
		"aSVwMSVkOyVwMiVkSCQ8NT4ACgAbW0gACAAbW0MkPDI+ABtbQSQ8Mj4ADgAbWzFtJDwyPgAbWzdtJDwy"
		"PgAbWzdtJDwyPgAbWzRtJDwyPgAPABtbbQ8kPDI+ABtbbSQ8Mj4AG1ttJDwyPgAIABtPQgAbT1AAG094"
		"ABtPUgAbT1MAG091ABtPdwAbT0QAG09DABtPQQAbWz8xbBs+ABtbPzFoGz0AG1slcDElZEIAG1slcDEl"
		"ZEQAG1slcDElZEMAG1slcDElZEEAGzwbPhtbPzM7NDs1bBtbPzc7OGgbW3IAGzgAGzcACgAbTSQ8NT4A"
		"G1swJT8lcDElcDYlfCV0OzElOyU/JXAyJXQ7NCU7JT8lcDElcDMlfCV0OzclOyU/JXA0JXQ7NSU7bSU/"
		"JXA5JXQOJWUPJTskPDI+ABtIAAkAYGBhYWZmZ2dqamtrbGxtbW5ub29wcHFxcnJzc3R0dXV2dnd3eHh5"
		"eXp6e3t8fH19fn4AGyhCGykwABtbMUskPDM+AA==",
	},
};
/* clang-format on */

enum { XTERM, SCREEN, LINUX, VT100 };

/* Which values of TERM begin like this; the first row that matches counts. */
static const struct {
	const char *prefix;
	int description;
} names[] = {
	{"xterm", XTERM},     {"screen", SCREEN}, {"tmux", SCREEN},   {"linux", LINUX},
	{"alacritty", XTERM}, {"foot", XTERM},	  {"ghostty", XTERM}, {"gnome", XTERM},
	{"konsole", XTERM},   {"kitty", XTERM},	  {"putty", XTERM},   {"rio", XTERM},
	{"rxvt", XTERM},      {"st-", XTERM},	  {"vte", XTERM},     {"wezterm", XTERM},
	{"vt", VT100},	      {"ansi", VT100},
};

const struct terminal_description *terminal_description_find(const char *term)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strncmp(term, names[i].prefix, strlen(names[i].prefix)) == 0)
			return &descriptions[names[i].description];
	return NULL;
}
